// Package caselist checks that each case of cases.md that is a package's own is
// either named by the comment of a test there, or listed with the reason why not. Only
// tests import it.
package caselist

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Elsewhere says why no test of the package names a case.
type Elsewhere struct {
	Why   string
	Tests []string // those of other packages that have it, as room.Test; the root is orderwheel
}

// Check fails t unless each of cases is either named by a test of the package in the
// working directory, in the form "Case 7" or "Cases 7, 99 and 118", or stands in elsewhere,
// whose tests exist. Rooms are looked for beside that directory, or in it where it is the
// module's.
func Check(t *testing.T, cases []int, elsewhere map[int]Elsewhere) {
	t.Helper()
	named := namedCases(t)
	for _, n := range cases {
		_, listed := elsewhere[n]
		require.NotEqual(t, listed, named[n] != "", "case %d: named by %q, listed: %v", n, named[n], listed)
	}
	for n, e := range elsewhere {
		require.Contains(t, cases, n)
		require.NotEmpty(t, e.Why, "case %d", n)
		for _, test := range e.Tests {
			requireTest(t, test)
		}
	}
}

var (
	caseRE   = regexp.MustCompile(`(?i)\bcases?\s+(\d+(?:(?:,|\s+and|,\s+and)\s+\d+)*)`)
	numberRE = regexp.MustCompile(`\d+`)
)

// namedCases are the cases that a comment of a test names, and the test.
func namedCases(t *testing.T) map[int]string {
	t.Helper()
	paths, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	named := map[int]string{}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		require.NoError(t, err)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(f.Name.Name, "Test") {
				continue
			}
			for _, list := range caseRE.FindAllString(f.Doc.Text(), -1) {
				for _, s := range numberRE.FindAllString(list, -1) {
					n, err := strconv.Atoi(s)
					require.NoError(t, err)
					named[n] = path + ": " + f.Name.Name
				}
			}
		}
	}
	return named
}

// requireTest checks that there is a test, named by its room and its name.
func requireTest(t *testing.T, test string) {
	t.Helper()
	room, name, ok := strings.Cut(test, ".")
	require.True(t, ok, test)
	if room == "orderwheel" {
		room = ""
	}
	root := ".."
	if _, err := os.Stat("go.mod"); err == nil {
		root = "."
	}
	paths, err := filepath.Glob(filepath.Join(root, room, "*_test.go"))
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(paths, func(path string) bool {
		source, err := os.ReadFile(path)
		require.NoError(t, err)
		return strings.Contains(string(source), "\nfunc "+name+"(t ")
	}), "there is no test %s", test)
}

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
// module's. suites are the patterns of files whose tests are rows of tables: there any
// comment may name a case.
func Check(t *testing.T, cases []int, elsewhere map[int]Elsewhere, suites ...string) {
	t.Helper()
	named := namedCases(t, suites)
	for _, n := range cases {
		_, listed := elsewhere[n]
		require.NotEqual(t, listed, named[n] != "", "case %d: named by %q, listed: %v", n, named[n], listed)
	}
	for n, e := range elsewhere {
		require.Contains(t, cases, n)
		require.NotEmpty(t, e.Why, "case %d", n)
		for _, test := range e.Tests {
			RequireTest(t, test)
		}
	}
}

var (
	caseRE   = regexp.MustCompile(`(?i)\bcases?\s+(\d+(?:(?:,|\s+and|,\s+and)\s+\d+)*)`)
	numberRE = regexp.MustCompile(`\d+`)
	testRE   = regexp.MustCompile(`^\w+\.\w+$`)
)

// namedCases are the cases that a comment of a test names, and the test.
func namedCases(t *testing.T, suites []string) map[int]string {
	t.Helper()
	named := map[int]string{}
	note := func(comment, test string) {
		for _, list := range caseRE.FindAllString(comment, -1) {
			for _, s := range numberRE.FindAllString(list, -1) {
				n, err := strconv.Atoi(s)
				require.NoError(t, err)
				named[n] = test
			}
		}
	}
	for path, file := range parsed(t, "*_test.go") {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Test") {
				note(f.Doc.Text(), path+": "+f.Name.Name)
			}
		}
	}
	for _, pattern := range suites {
		for path, file := range parsed(t, pattern) {
			for _, c := range file.Comments {
				note(c.Text(), path)
			}
		}
	}
	return named
}

func parsed(t *testing.T, pattern string) map[string]*ast.File {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	files := map[string]*ast.File{}
	for _, path := range paths {
		files[path], err = parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		require.NoError(t, err)
	}
	return files
}

// RequireTest fails t unless there is a test of that room and name, such as
// executor.TestX; the root is orderwheel. Rooms are looked for as in Check.
func RequireTest(t *testing.T, test string) {
	t.Helper()
	require.Regexp(t, testRE, test)
	room, name, _ := strings.Cut(test, ".")
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

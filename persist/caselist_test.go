package persist_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The cases of cases.md that are about this package, by section.
var caseSections = map[string][]int{
	"Persistence, recovery, claims":  {32, 34, 35, 36, 37, 39, 40, 42, 45, 46, 47, 48, 50, 52, 53, 55, 56, 58, 59, 60, 61, 63, 64},
	"Lua, ZSet, Redis, go-redis":     {66, 68, 69, 70, 71, 73, 74, 76, 78, 79, 80, 82, 83, 84, 85, 88, 89, 90, 92, 93, 94},
	"Test double against real Redis": {135, 136, 138, 139, 140},
}

// notHere are those that no test of this package names, and why: tests of other rooms have
// them, or what they are about does not exist yet.
var notHere = map[int]struct {
	why   string
	tests []string // room.Test
}{
	32: {"what an engine does at its Start", []string{"orderwheel.TestARestartLosesNothingAndRunsNothingTwice"}},
	34: {"which timer of an engine goes first", []string{"orderwheel.TestSchedulingAgainMoves"}},
	36: {"how soon an engine runs what fell due", []string{"orderwheel.TestWhatComesDueWhileRedisIsAwayRunsWhenItIsBack"}},
	37: {"loops; there is none here", []string{"recovery.TestAnErrorOfTheStoreEndsNoLoop"}},
	45: {"there are no payloads", nil},
	50: {"what an engine does at its Start", []string{"orderwheel.TestARestartLosesNothingAndRunsNothingTwice"}},
	56: {"there are no payloads", nil},
	63: {"there is no leader: the sweep of any other instance takes over", []string{"orderwheel.TestAnotherInstanceTakesOverWhatADeadOneLeft"}},
	64: {"which timer of an engine goes first", []string{"orderwheel.TestSchedulingAgainMoves"}},
	69: {"when to claim and to sweep", []string{"executor.TestAllRunAtMostWorkersAtOnce", "recovery.TestSweepPausesWhileMoreIsReadyThanWorkersCanTakeUp"}},

	92: {"comes with the soak", nil},
}

// Each case is either named by the comment of a test, or stands in notHere.
func TestEveryCaseIsTestedOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	named := namedCases(t)
	var all []int
	for section, cases := range caseSections {
		all = append(all, cases...)
		for _, n := range cases {
			_, elsewhere := notHere[n]
			require.NotEqual(t, elsewhere, named[n] != "", "case %d of %q: test %q, in notHere: %v", n, section, named[n], elsewhere)
		}
	}
	require.Subset(t, all, slices.Collect(maps.Keys(notHere)))
	for n, reason := range notHere {
		require.NotEmpty(t, reason.why, "case %d", n)
		for _, test := range reason.tests {
			requireTest(t, test)
		}
	}
}

var (
	caseRE   = regexp.MustCompile(`(?i)\bcases?\s+(\d+(?:(?:,|\s+and|,\s+and)\s+\d+)*)`)
	numberRE = regexp.MustCompile(`\d+`)
)

// namedCases are the cases that a comment of a test here names, and the test. In persisttest the
// tests are rows of tables, and a comment stands beside or above its row.
func namedCases(t *testing.T) map[int]string {
	t.Helper()
	named := map[int]string{}
	note := func(comment, test string) {
		for _, list := range caseRE.FindAllStringSubmatch(comment, -1) {
			for _, s := range numberRE.FindAllString(list[1], -1) {
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
	for path, file := range parsed(t, "persisttest/*.go") {
		for _, c := range file.Comments {
			note(c.Text(), path)
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

// requireTest checks that there is a test, named by its room and its name.
func requireTest(t *testing.T, test string) {
	t.Helper()
	room, name, ok := strings.Cut(test, ".")
	require.True(t, ok, test)
	if room == "orderwheel" {
		room = ""
	}
	paths, err := filepath.Glob(filepath.Join("..", room, "*_test.go"))
	require.NoError(t, err)
	for _, path := range paths {
		source, err := os.ReadFile(path)
		require.NoError(t, err)
		if strings.Contains(string(source), "\nfunc "+name+"(t ") {
			return
		}
	}
	require.Fail(t, "there is no such test", test)
}

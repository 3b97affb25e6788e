package orderwheel_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// readsWallClock are the methods that make a number of a time.Time, or a time without its
// monotonic reading. Differences of what time.Now returned do not need them, and are of
// the monotonic clock: a step of the wall clock does not change them.
var readsWallClock = []string{"Unix", "UnixMilli", "UnixMicro", "UnixNano", "Truncate", "UTC", "Local", "In"}

// noReadings are the places where one of these is called, and why that is no reading
// of the local clock, or does not matter.
var noReadings = map[string]string{
	"engine.go: at.UTC":                          "the user's instant",
	"engine.go: at.Add(...).UnixMilli":           "the user's instant",
	"executor/run.go: t.Add(...).UnixMilli":      "the handler's instant",
	"persist/memory.go: time.Now().UnixMilli":    "the clock of a store that is this process",
	"recovery/pages.go: time.UnixMilli(...).UTC": "the store's instant, to be shown",
}

// Case 10, and the half of show 7 that no test can act out: the host's clock is not
// touched.
func TestNoRoomReadsTheLocalWallClock(t *testing.T) {
	t.Parallel()
	var found []string
	for _, dir := range []string{".", "wheel", "wheel/russellluo", "executor", "recovery", "persist", "internal/arming"} {
		files, err := fs.Glob(os.DirFS(dir), "*.go")
		require.NoError(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			path := filepath.Join(dir, file)
			set := token.NewFileSet()
			tree, err := parser.ParseFile(set, path, nil, 0)
			require.NoError(t, err)
			ast.Inspect(tree, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if ok && slices.Contains(readsWallClock, s.Sel.Name) && text(s.X) != "time" { // time.UnixMilli makes one
					found = append(found, path+": "+text(s.X)+"."+s.Sel.Name)
				}
				return true
			})
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(noReadings)), found)
}

// text is an expression, without what is in its brackets.
func text(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return text(e.X) + "." + e.Sel.Name
	case *ast.CallExpr:
		if len(e.Args) > 0 {
			return text(e.Fun) + "(...)"
		}
		return text(e.Fun) + "()"
	}
	return "(...)"
}

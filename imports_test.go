package orderwheel_test

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/orderwheel/orderwheel"

// A room is one package of the house. By whatever path, it may reach only the
// rooms named here, and of the restricted modules only its own and those of
// these rooms. The standard library and internal/... are open to all.
type room struct {
	path    string   // below the module; "." is the root package
	ours    []string // rooms it may reach
	foreign []string // restricted modules it may reach
}

// rooms is the table of the house. Dependencies point one way: the root package
// wires recovery, executor, persist and wheel together; order knows none of
// them.
var rooms = []room{
	{path: ".", ours: []string{"persist", "wheel", "executor", "recovery"}},
	{path: "wheel"},
	{path: "wheel/russellluo", ours: []string{"wheel"}, foreign: []string{"github.com/RussellLuo/timingwheel"}},
	{path: "persist"},
	{path: "persist/persisttest", ours: []string{"persist"}, foreign: []string{"github.com/stretchr/testify"}},
	{path: "executor", ours: []string{"persist", "wheel"}},
	{path: "recovery", ours: []string{"persist", "wheel"}},
	{path: "order/internal/check"},
	{path: "order", ours: []string{"order/internal/check"}},
	{path: "order/sqlstore", ours: []string{"order", "order/internal/check"}},
	{path: "order/sqlstore/sqlite", ours: []string{"order", "order/sqlstore", "order/internal/check"}, foreign: []string{"modernc.org/sqlite"}},
	{path: "order/sqlstore/mysql", ours: []string{"order", "order/sqlstore", "order/internal/check"}, foreign: []string{"github.com/go-sql-driver/mysql"}},
	{path: "order/sqlstore/postgres", ours: []string{"order", "order/sqlstore", "order/internal/check"}, foreign: []string{"github.com/jackc/pgx"}},
}

// free are the trees that may import everything: programs, benchmarks, test
// suites and private helpers.
var free = []string{"internal", "bench", "examples", "wheel/wheeltest"}

// restricted are the foreign modules that no user of the library should get
// into a build unasked, and why.
var restricted = map[string]string{
	"modernc.org/sqlite":                "a SQL driver",
	"github.com/mattn/go-sqlite3":       "a SQL driver",
	"github.com/go-sql-driver/mysql":    "a SQL driver",
	"github.com/jackc/pgx":              "a SQL driver",
	"github.com/lib/pq":                 "a SQL driver",
	"github.com/alicebob/miniredis":     "a test double",
	"github.com/stretchr/testify":       "for tests only",
	"go.uber.org/goleak":                "for tests only",
	"github.com/RussellLuo/timingwheel": "a rival wheel",
	"github.com/hibiken/asynq":          "a rival",
	"github.com/riverqueue/river":       "a rival",
	"github.com/rabbitmq/amqp091-go":    "a rival's client",
	"gonum.org/v1/plot":                 "for drawings only",
}

// faults names each of deps (import paths) that r must not reach.
func (r room) faults(deps []string) []string {
	var faults []string
	for _, dep := range deps {
		if ours, ok := below(module, dep); ok {
			if ours != r.path && !slices.Contains(r.ours, ours) && !under("internal", ours) {
				faults = append(faults, fmt.Sprintf("%s reaches our %s", r.path, ours))
			}
			continue
		}
		for mod, what := range restricted {
			if under(mod, dep) && !r.mayReach(mod) {
				faults = append(faults, fmt.Sprintf("%s reaches %s, %s", r.path, dep, what))
			}
		}
	}
	return faults
}

func (r room) mayReach(mod string) bool {
	return slices.Contains(r.foreign, mod) || slices.ContainsFunc(rooms, func(other room) bool {
		return slices.Contains(r.ours, other.path) && slices.Contains(other.foreign, mod)
	})
}

// below gives the part of path under root; "." is root itself.
func below(root, path string) (string, bool) {
	if path == root {
		return ".", true
	}
	return strings.CutPrefix(path, root+"/")
}

func under(root, path string) bool {
	_, ok := below(root, path)
	return ok
}

func TestEachRoomReachesOnlyWhatTheTableAllows(t *testing.T) {
	t.Parallel()
	for _, r := range rooms {
		t.Run(r.path, func(t *testing.T) {
			t.Parallel()
			require.Empty(t, r.faults(goList(t, "-deps", "./"+r.path)))
		})
	}
}

func TestEveryPackageIsARoomOfTheTable(t *testing.T) {
	t.Parallel()
	for _, pkg := range goList(t, "./...") {
		path, ok := below(module, pkg)
		require.True(t, ok, pkg)
		known := slices.ContainsFunc(rooms, func(r room) bool { return r.path == path }) ||
			slices.ContainsFunc(free, func(tree string) bool { return under(tree, path) })
		require.True(t, known, "%s is not in the table: say there what it may import", path)
	}
}

// goList runs go list and gives the lines of its answer. It fails the test when
// a package does not exist.
func goList(t *testing.T, args ...string) []string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "go list %s: %s", strings.Join(args, " "), stderr.String())
	return strings.Fields(string(out))
}

func TestPlantedImportsAreFound(t *testing.T) {
	t.Parallel()
	executor := room{path: "executor", ours: []string{"persist", "wheel"}}
	sqlite := room{path: "order/sqlstore/sqlite", foreign: []string{"modernc.org/sqlite"}}
	front := room{path: ".", ours: []string{"wheel/russellluo"}}
	for name, c := range map[string]struct {
		room room
		deps []string
		want []string
	}{
		"what is allowed": {executor, []string{
			"context", "database/sql", module + "/executor", module + "/persist", module + "/wheel",
			module + "/internal/redistest", "github.com/panjf2000/ants/v2", "github.com/redis/go-redis/v9",
		}, nil},
		"a room above it":            {executor, []string{module + "/recovery"}, []string{"executor reaches our recovery"}},
		"the root package":           {executor, []string{module}, []string{"executor reaches our ."}},
		"a room below an open one":   {executor, []string{module + "/wheel/russellluo"}, []string{"executor reaches our wheel/russellluo"}},
		"a name that only resembles": {executor, []string{module + "/internals"}, []string{"executor reaches our internals"}},
		"a later major version":      {executor, []string{"github.com/jackc/pgx/v5/stdlib"}, []string{"executor reaches github.com/jackc/pgx/v5/stdlib, a SQL driver"}},
		"a test double":              {executor, []string{"github.com/alicebob/miniredis/v2"}, []string{"executor reaches github.com/alicebob/miniredis/v2, a test double"}},
		"a rival":                    {executor, []string{"github.com/RussellLuo/timingwheel"}, []string{"executor reaches github.com/RussellLuo/timingwheel, a rival wheel"}},
		"its own driver":             {sqlite, []string{"modernc.org/sqlite", "modernc.org/sqlite/lib"}, nil},
		"the module of an open room": {front, []string{module + "/wheel/russellluo", "github.com/RussellLuo/timingwheel"}, nil},
		"another driver": {sqlite, []string{"github.com/go-sql-driver/mysql"},
			[]string{"order/sqlstore/sqlite reaches github.com/go-sql-driver/mysql, a SQL driver"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, c.room.faults(c.deps))
		})
	}
}

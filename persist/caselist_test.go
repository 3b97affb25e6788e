package persist_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/orderwheel/orderwheel/internal/caselist"
)

// The cases of cases.md that are about this package, by section.
var caseSections = map[string][]int{
	"Persistence, recovery, claims":  {32, 34, 35, 36, 37, 39, 40, 42, 45, 46, 47, 48, 50, 52, 53, 55, 56, 58, 59, 60, 61, 63, 64},
	"Lua, ZSet, Redis, go-redis":     {66, 68, 69, 70, 71, 73, 74, 76, 78, 79, 80, 82, 83, 84, 85, 88, 89, 90, 92, 93, 94},
	"Test double against real Redis": {135, 136, 138, 139, 140},
}

// notHere are those that no test of this package names, and why: tests of other rooms have
// them, or what they are about does not exist yet.
var notHere = map[int]caselist.Elsewhere{
	32: {Why: "what an engine does at its Start", Tests: []string{"orderwheel.TestARestartLosesNothingAndRunsNothingTwice"}},
	34: {Why: "which timer of an engine goes first", Tests: []string{"orderwheel.TestSchedulingAgainMoves"}},
	36: {Why: "how soon an engine runs what fell due", Tests: []string{"orderwheel.TestWhatComesDueWhileRedisIsAwayRunsWhenItIsBack"}},
	37: {Why: "loops; there is none here", Tests: []string{"recovery.TestAnErrorOfTheStoreEndsNoLoop"}},
	45: {Why: "there are no payloads"},
	50: {Why: "what an engine does at its Start", Tests: []string{"orderwheel.TestARestartLosesNothingAndRunsNothingTwice"}},
	56: {Why: "there are no payloads"},
	63: {Why: "there is no leader: the sweep of any other instance takes over", Tests: []string{"orderwheel.TestAnotherInstanceTakesOverWhatADeadOneLeft"}},
	64: {Why: "which timer of an engine goes first", Tests: []string{"orderwheel.TestSchedulingAgainMoves"}},
	69: {Why: "when to claim and to sweep", Tests: []string{"executor.TestAllRunAtMostWorkersAtOnce", "recovery.TestSweepPausesWhileMoreIsReadyThanWorkersCanTakeUp"}},

	92: {Why: "comes with the soak"},
}

// Each case is either named by the comment of a test, or stands in notHere. In persisttest
// the tests are rows of tables, and a comment stands beside or above its row.
func TestEveryCaseIsTestedOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	caselist.Check(t, slices.Concat(slices.Collect(maps.Values(caseSections))...), notHere, "persisttest/*.go")
}

package recovery

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/internal/caselist"
)

// The cases of cases.md, section "Persistence, recovery, claims". Those that are recovery's are
// named by tests here; of the others it says where they are, or why there is none.
var cases = map[string]struct {
	tests []string // of this package, or package.Test of another
	why   string   // there is none here
}{
	"32": {tests: []string{"orderwheel.TestARestartLosesNothingAndRunsNothingTwice"}},
	"34": {tests: []string{"orderwheel.TestSchedulingAgainMoves"}, why: "which one of a wheel goes first"},
	"35": {tests: []string{"TestAnErrorOfTheStoreEndsNoLoop"}},
	"36": {tests: []string{"orderwheel.TestWhatComesDueWhileRedisIsAwayRunsWhenItIsBack"}},
	"37": {tests: []string{"TestAnErrorOfTheStoreEndsNoLoop", "TestALoopThatPanicsGoesOnAndSaysSo", "TestALoopThatHangsSaysSo"}},
	"39": {tests: []string{"orderwheel.TestFiveInstancesRunEachTaskOnce"}, why: "what a claim decides"},
	"40": {why: "there is no list to wait in: one script moves a task"},
	"42": {tests: []string{"TestAnErrorOfTheStoreEndsNoLoop", "TestAReadingThatFailsIsMadeAgain"}},
	"45": {why: "there are no payloads"},
	"46": {why: "what the executor does with a batch"},
	"47": {tests: []string{"TestWhatIsOverdueByDaysRuns"}},
	"48": {tests: []string{"TestARebuildThatTakesLongMovesNoDueTime"}},
	"50": {tests: []string{"orderwheel.TestARestartLosesNothingAndRunsNothingTwice"}},
	"52": {tests: []string{"TestALossOfTheStoreIsReconciledAtOnce", "orderwheel.TestAnEmptiedRedisIsFilledAgainFromTheOrderDatabase"}},
	"53": {why: "there are no payloads"},
	"55": {why: "persist finds a claim without its lease, in Reap"},
	"56": {why: "there are no payloads"},
	"58": {why: "persist repeats a write as it was"},
	"59": {why: "what replicas have is persist's"},
	"60": {why: "what replicas have is persist's"},
	"61": {tests: []string{"TestWhatIsOverdueByDaysRuns", "orderwheel.TestARestartLosesNothingAndRunsNothingTwice"}},
	"63": {tests: []string{"orderwheel.TestAnotherInstanceTakesOverWhatADeadOneLeft"}},
	"64": {tests: []string{"orderwheel.TestSchedulingAgainMoves"}, why: "which one of a wheel goes first"},
	"69": {tests: []string{"TestSweepPausesWhileMoreIsReadyThanWorkersCanTakeUp"}},
}

func TestEachCaseHasItsTestOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	for n, c := range cases {
		require.True(t, len(c.tests) > 0 || c.why != "", "case %s", n)
		for _, test := range c.tests {
			if !strings.Contains(test, ".") {
				test = "recovery." + test
			}
			caselist.RequireTest(t, test)
		}
	}
}

package executor

import (
	"testing"

	"github.com/orderwheel/orderwheel/internal/caselist"
)

// Each case of these sections of cases.md is either named by the comment of a test
// here, or listed below.
func TestEveryCaseIsTestedOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	caselist.Check(t, []int{
		96, 97, 99, 101, 102, 103, 104, 106, // ants
		107, 108, 110, 112, 114, 115, 116, 118, 119, 120, 122, 123, 125, // Lease, retry, meaning of cancel
	}, map[int]caselist.Elsewhere{
		102: {Why: "an executor is started once; the engine makes a new one", Tests: []string{"orderwheel.TestARestartLosesNothingAndRunsNothingTwice"}},
		106: {Why: "the engine guards its logger", Tests: []string{"orderwheel.TestALoggerThatPanicsLosesNothing"}},
		107: {Why: "the store's clock and the wheel's together", Tests: []string{"orderwheel.TestNoneOf1000RandomMillisecondsIsEarly"}},
		108: {Why: "a speed: the benchmark of the engine's fires measures it"},
		112: {Why: "a cancel is the store's and the engine's", Tests: []string{"orderwheel.TestCancellingARunningTaskIsFalseAndEndsItsRetries"}},
		114: {Why: "a cancel is the store's and the engine's", Tests: []string{"orderwheel.TestSchedulingAgainMoves"}},
		116: {Why: "there are no payloads"},
		122: {Why: "Start and Stop at once are the engine's", Tests: []string{"orderwheel.TestStartRacedByStop", "orderwheel.TestAHandlerMayCallTheEngine"}},
		123: {Why: "an executor is started once; the engine makes a new one", Tests: []string{"orderwheel.TestADeadTaskStaysDeadWhateverIsRestarted"}},
		125: {Why: "a speed: the benchmark of the wheel measures it"},
	})
}

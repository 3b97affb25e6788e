package orderwheel_test

import (
	"testing"

	"github.com/orderwheel/orderwheel/internal/caselist"
)

// Each case of the section Timing wheel of cases.md is either named by the comment of a
// test of the whole engine, or listed below.
func TestEveryCaseOfTheWheelIsTestedOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	boundaries := []string{"wheel.TestEveryLevelBoundaryFiresAtItsMillisecond"}
	caselist.Check(t, []int{
		1, 2, 4, 6, 7, 8, 10, 11, 14, 15, 17, 18, 19, 20, 22, 24, 26, 27, 28, 30, 31,
	}, map[int]caselist.Elsewhere{
		1:  {Why: "the wheel's own locks; of one that hangs, the engine replaces it", Tests: []string{"wheel.TestBusyAddersDoNotHangTheWheel", "orderwheel.TestAWheelThatHangsHoldsUpNothingAndIsReplaced"}},
		6:  {Why: "the wheel's memory", Tests: []string{"wheel.TestMemoryGoesBackAfterStop"}},
		14: {Why: "the wheel's ticks, of which it has none: the suite of every wheel", Tests: []string{"wheel.TestConformance"}},
		15: {Why: "the wheel's levels", Tests: boundaries},
		19: {Why: "the wheel's levels", Tests: boundaries},
		20: {Why: "the wheel's levels", Tests: boundaries},
		26: {Why: "the wheel's memory", Tests: []string{"wheel.TestMemoryOfCancelledIDsGoesBack"}},
		31: {Why: "go.mod asks for a later Go, and nothing here has a ticker so short"},
	})
}

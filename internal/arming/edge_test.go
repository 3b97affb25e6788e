package arming

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/wheel"
)

func TestWhatIsDueBeyondTheEdgeIsNotArmed(t *testing.T) {
	t.Parallel()
	b, w := setup(t)
	b.UserScheduled("before there is an edge", 1_000_000)
	b.SetEdge(100)
	ticket := b.Ask()
	b.UserScheduled("near", 100)
	b.UserScheduled("far", 101)
	b.Arm(ticket, "retried near", 99)
	b.Arm(ticket, "retried far", 200)
	ArmAll(b, ticket, []wheel.Due{{ID: "read near", DueMS: 1}, {ID: "read far", DueMS: 1000}})
	b.End(ticket)
	require.Equal(t, map[string]int64{"before there is an edge": 1_000_000, "near": 100, "retried near": 99, "read near": 1}, knows(t, b, w))
}

func TestWhatMovesBeyondTheEdgeIsDisarmed(t *testing.T) {
	t.Parallel()
	b, w := setup(t)
	b.SetEdge(100)
	for _, id := range []string{"by the user", "by an answer"} {
		b.UserScheduled(id, 50)
	}
	ticket := b.Ask()
	b.UserScheduled("by the user", 101)
	b.Arm(ticket, "by an answer", 101)
	b.End(ticket)
	require.Empty(t, knows(t, b, w))
}

func TestTheEdgeNeverMovesBack(t *testing.T) {
	t.Parallel()
	b, _ := setup(t)
	b.SetEdge(100)
	b.SetEdge(50)
	require.EqualValues(t, 100, b.Edge())
}

// A page says that an id is due; the user moved or cancelled it after the page was
// asked for.
func TestAPageArmsNothingThatTheUserHasDecidedSince(t *testing.T) {
	t.Parallel()
	b, w := setup(t)
	ticket := b.Ask()
	b.UserScheduled("moved", 7)
	b.UserCancelled("cancelled")
	ArmAll(b, ticket, []wheel.Due{{ID: "moved", DueMS: 1}, {ID: "cancelled", DueMS: 2}, {ID: "other", DueMS: 3}})
	b.End(ticket)
	require.Equal(t, map[string]int64{"moved": 7, "other": 3}, knows(t, b, w))
}

// What a page arms while a sweep is under way is newer than what the sweep has read.
func TestASweepLeavesAloneWhatAPageHasArmedSince(t *testing.T) {
	t.Parallel()
	b, w := setup(t)
	b.UserScheduled("A", 1)
	sweep := b.AskOverdue()
	page := b.Ask()
	ArmAll(b, page, []wheel.Due{{ID: "A", DueMS: 9}})
	b.End(page)
	b.Missed(sweep, "A")
	b.EndOverdue(sweep)
	require.Equal(t, map[string]int64{"A": 9}, knows(t, b, w))
	require.Zero(t, b.MissedCount())
}

package arming

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/wheel"
)

// firing is a wheel that hangs while block is open, and fires what the test says.
type firing struct {
	armed
	block chan struct{} // nil: it does not hang
	fire  func([]wheel.Due)
}

func (f *firing) Schedule(id string, dueMS int64) {
	if f.block != nil {
		<-f.block
	}
	f.armed.Schedule(id, dueMS)
}

func (f *firing) Start(fire func([]wheel.Due)) { f.fire = fire }

func TestAReplacedWheelIsLeftAloneAndTheNextIsFedAtOnce(t *testing.T) {
	t.Parallel()
	old := &firing{armed: armed{due: map[string]int64{}}, block: make(chan struct{})}
	b := New(old)
	b.Start()
	fired := make(chan []wheel.Due, 1)
	b.StartWheel(func(due []wheel.Due) { fired <- due })
	b.UserScheduled("hangs", 1)
	b.UserScheduled("waits", 2)
	next := &firing{armed: armed{due: map[string]int64{}}}
	was, ok := b.Replace(next)
	require.True(t, ok)
	require.Same(t, old, was)
	require.NoError(t, b.Drain(t.Context()), "what the old one did not take is dropped")
	b.UserScheduled("after", 3)
	require.NoError(t, b.Drain(t.Context()))
	require.Equal(t, map[string]int64{"after": 3}, knows(t, b, &next.armed))
	require.Equal(t, Progress{Carried: 3}, b.Progress())

	next.fire([]wheel.Due{{ID: "after", DueMS: 3}})
	require.Len(t, <-fired, 1)
	require.EqualValues(t, 1, b.Progress().Fired)
	close(old.block) // it awakes, and takes nothing any more
	require.NoError(t, b.Stop(t.Context()))
	_, ok = b.Replace(&firing{})
	require.False(t, ok, "after Stop")
}

package persist_test

import (
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/internal/faultproxy"
	"github.com/orderwheel/orderwheel/persist"
	"github.com/stretchr/testify/require"
)

// What doc.go says is not covered: a copy that Redis executes after later calls.
// When it is covered, the state after release is the one before it.

// late has the first copy of the next call held, and its connection cut, so that the
// call repeats itself. The copy is executed by release.
func late(t *testing.T, p *proxy) (release func()) {
	t.Helper()
	p.faults(faultproxy.Do(faultproxy.HoldAndCut))
	return func() {
		t.Helper()
		h, err := p.NextHeld(bounded(t))
		require.NoError(t, err)
		h.Release()
		require.NoError(t, h.Executed(bounded(t)))
	}
}

func TestALateScheduleBringsBackWhatWasCancelled(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupMini(t))
	release := late(t, p)
	b.scheduled(t, 7, "x")
	require.Equal(t, persist.Cancelled, cancelX(t, b))
	b.requireEmpty(t)
	release()
	where, record := left(t, b)
	require.Equal(t, "due 7", where)
	require.Empty(t, record)
}

func TestALateCancelRemovesWhatWasScheduledAgain(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupMini(t))
	b.scheduled(t, 7, "x")
	release := late(t, p)
	require.Equal(t, persist.Cancelled, cancelX(t, b))
	b.scheduled(t, 8, "x")
	release()
	b.requireEmpty(t)
}

func TestALateClaimHoldsATaskUntilItsLeaseEnds(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupMini(t))
	b.scheduled(t, past, "x")
	release := late(t, p)
	b.claimed(t, "tok", time.Millisecond, "x")
	require.Equal(t, persist.Scheduled, retryX(t, b, persist.Retry{DueMS: past}).State)
	release()
	got, err := b.Claim(t.Context(), "tok2", []string{"x"}, time.Hour)
	require.NoError(t, err)
	require.Equal(t, persist.Busy, got.Claims[0].State)
	b.waitFor(t, b.nowMS(t)+10)
	reaped, err := b.Reap(t.Context(), 1)
	require.NoError(t, err)
	require.Len(t, reaped, 1)
	b.claimed(t, "tok2", time.Hour, "x")
}

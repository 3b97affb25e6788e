package persist_test

import (
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/internal/faultproxy"
	"github.com/orderwheel/orderwheel/persist"
	"github.com/stretchr/testify/require"
)

// A copy that Redis gets after later calls changes nothing any more.

// late has the first copy of the next call held, and its connection cut, so that the
// call repeats itself. The copy reaches Redis by release, which checks that it changes
// nothing.
func late(t *testing.T, b bed, p *proxy) (release func()) {
	t.Helper()
	p.faults(faultproxy.Do(faultproxy.HoldAndCut))
	return func() {
		t.Helper()
		before := b.stored(t)
		h, err := p.NextHeld(bounded(t))
		require.NoError(t, err)
		h.Release()
		require.NoError(t, h.Executed(bounded(t)))
		require.Equal(t, before, b.stored(t))
	}
}

func TestALateScheduleDoesNotBringBackWhatWasCancelled(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupMini(t))
	release := late(t, b, p)
	b.scheduled(t, 7, "x")
	require.Equal(t, persist.Cancelled, cancelX(t, b))
	b.requireEmpty(t)
	release()
}

func TestALateCancelDoesNotRemoveWhatWasScheduledAgain(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupMini(t))
	b.scheduled(t, 7, "x")
	release := late(t, b, p)
	require.Equal(t, persist.Cancelled, cancelX(t, b))
	b.scheduled(t, 8, "x")
	release()
}

func TestALateClaimHoldsNothing(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupMini(t))
	b.scheduled(t, past, "x")
	release := late(t, b, p)
	b.claimed(t, "tok", time.Millisecond, "x")
	require.Equal(t, persist.Scheduled, retryX(t, b, persist.Retry{DueMS: past}).State)
	release()
	b.claimed(t, "tok2", time.Hour, "x")
}

func TestALateRequeueOrDiscardDoesNotTouchOneThatDiedOnceMore(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(t *testing.T, b bed){
		"requeue": func(t *testing.T, b bed) { require.Equal(t, persist.Scheduled, requeueX(t, b).State) },
		"discard": func(t *testing.T, b bed) { require.True(t, discardX(t, b)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, p := behindProxy(t, setupMini(t))
			b.died(t, past, "x")
			release := late(t, b, p)
			call(t, b)
			b.scheduled(t, past, "x")
			b.died(t, past, "x")
			release()
		})
	}
}

package fires

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEachIDIsDueInItsMillisecondAndCountedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRun(Load{Rate: 2000, Seconds: 1})
		r.first = time.Now().Add(time.Second)
		seen := make(chan string, 2000)
		require.NoError(t, r.arm(Subject{Armers: 1, Arm: func(id string, due time.Time) error {
			require.Zero(t, due.UnixNano()%int64(time.Millisecond))
			time.AfterFunc(time.Until(due)+3*time.Millisecond, func() {
				r.fired(id)
				r.fired(id)
				seen <- id
			})
			return nil
		}}))
		require.True(t, r.wait())
		synctest.Wait()
		require.Len(t, seen, 2000)
		require.Equal(t, r.first.Add(999*time.Millisecond), r.due(1999))
		require.InDelta(t, 3.1, r.late.Quantile(0), 1e-9)
		require.InDelta(t, 3.1, r.late.Quantile(1), 1e-9)
		require.Zero(t, r.late.Early())
	})
}

func TestWhatNeverFiresIsWaitedForWithinBounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRun(Load{Rate: 10, Seconds: 1})
		r.first = time.Now()
		require.False(t, r.wait())
		require.EqualValues(t, 10, r.left.Load())
	})
}

func TestAnErrorEndsTheArming(t *testing.T) {
	t.Parallel()
	r := newRun(Load{Rate: 1000, Seconds: 1})
	full := errors.New("full")
	calls := 0
	require.ErrorIs(t, r.arm(Subject{Armers: 1, Arm: func(string, time.Time) error {
		calls++
		return full
	}}), full)
	require.Equal(t, 1, calls)
}

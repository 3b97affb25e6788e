package executor

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Handlers that hang in a run without a claim, long past the end of their ctx.

// setupHung is an executor whose store is away, and whose handler hangs in each run without a
// claim until leave is closed, but for those of ok.
func setupHung(t *testing.T, workers int, ok string, change ...func(*Config)) (r awayRig, leave chan struct{}, ran *noted[string]) {
	leave, ran = make(chan struct{}), new(noted[string])
	handler := func(_ context.Context, task Task) error {
		if ran.add(fmt.Sprint(task.ID, " ", task.Unclaimed)); task.Unclaimed && task.ID != ok {
			<-leave
		}
		return nil
	}
	r = setupAway(t, nil, append([]func(*Config){func(c *Config) {
		c.Handler, c.Workers, c.Lease, c.HandlerTimeout = handler, workers, 6*time.Second, 10*time.Second
	}}, change...)...)
	r.far.leave(false)
	return r, leave, ran
}

func TestAHandlerThatHangsWithoutAClaimKeepsNeitherItsWorkerNorItsTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, leave, ran := setupHung(t, 1, "B")
		r.schedule("A", r.start)
		later(time.Second)
		r.schedule("B", time.Now())
		later(10 * time.Second) // its ctx has ended
		require.Equal(t, []string{"A true"}, ran.all())
		later(2 * time.Second)
		require.Equal(t, []string{"A true", "B true"}, ran.all(), "by the one that came in its stead")
		require.Equal(t, 1, r.Stats().Stuck)

		r.far.comeBack()
		later(2 * time.Second)
		require.ElementsMatch(t, []string{"A true", "B true", "A false", "B false"}, ran.all())
		require.EqualValues(t, 2, r.Stats().Done)
		require.Empty(t, r.Problems(), "it can be lived with")

		close(leave)
		later(time.Hour)
		require.Len(t, ran.all(), 4)
		s := r.Stats()
		require.Zero(t, s.Stuck+s.Running+s.Ready+s.Awaiting)
		require.EqualValues(t, 2, s.Done)
	})
}

// The store is back before the handler is given up: then the claim waits for that.
func TestAClaimThatWaitsForAHandlerThatHangsWithoutAClaimIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, leave, ran := setupHung(t, 1, "")
		r.schedule("A", r.start)
		later(time.Second)
		r.far.comeBack()
		later(9 * time.Second) // the lease of the claim is over
		require.Equal(t, []string{"A true"}, ran.all())
		require.Len(t, r.store.reap(), 1)
		later(3 * time.Second)
		r.sweep()
		later(time.Second)
		require.Equal(t, []string{"A true", "A false"}, ran.all())
		require.EqualValues(t, 1, r.Stats().Done)
		close(leave)
	})
}

func TestAtMostWorkersAreReplacedThatHangWithoutAClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var atWork, most atomic.Int64
		leave := make(chan struct{})
		r := setupAway(t, nil, func(c *Config) {
			c.Workers, c.Lease, c.HandlerTimeout = 2, 6*time.Second, 10*time.Second
			c.Handler = func(_ context.Context, task Task) error {
				most.Store(max(most.Load(), atWork.Add(1)))
				defer atWork.Add(-1)
				<-leave
				return nil
			}
		})
		r.far.leave(false)
		for i := range 10 {
			r.schedule(fmt.Sprint(i), r.start)
		}
		later(time.Minute)
		require.EqualValues(t, 4, most.Load(), "two, and two in their stead")
		require.Equal(t, 4, r.Stats().Stuck)
		require.Contains(t, r.Problems()[0], "2 of 2 workers")
		r.far.comeBack()
		later(time.Minute)
		require.Zero(t, r.Stats().Done)

		close(leave)
		later(time.Minute)
		r.store.reap()
		r.sweep()
		later(time.Minute)
		require.Empty(t, r.Problems())
		require.EqualValues(t, 10, r.Stats().Done)
		require.Zero(t, r.Stats().Running)
	})
}

func TestAMoveWhileAHandlerHangsWithoutAClaimHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, leave, ran := setupHung(t, 1, "")
		r.schedule("A", r.start)
		later(time.Second)
		r.move("A", r.start.Add(20*time.Second), now)
		later(18 * time.Second)
		require.Equal(t, []string{"A true"}, ran.all())
		later(2 * time.Second)
		require.Equal(t, []string{"A true", "A true"}, ran.all(), "at its new time, while the first one hangs")
		require.False(t, r.cancel("A", now), "it has started")
		r.far.comeBack()
		later(time.Hour)
		require.Len(t, ran.all(), 2)
		close(leave)
	})
}

func TestStopWaitsForAHandlerThatHangsWithoutAClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, leave, _ := setupHung(t, 1, "")
		r.schedule("A", r.start)
		later(time.Minute)
		require.Equal(t, 1, r.Stats().Stuck)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := r.Stop(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		close(leave)
		require.NoError(t, r.Stop(t.Context()))
	})
}

// With the shortest lease its ctx ends hardly before it is given up.
func TestARunWithoutAClaimUnderTheShortestLeaseEndsAsUsual(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setupAway(t, nil, func(c *Config) {
			c.Lease, c.HandlerTimeout = time.Millisecond, time.Millisecond
			c.Handler = func(ctx context.Context, task Task) error { <-ctx.Done(); return nil }
		})
		r.far.leave(false)
		for i := range 100 {
			r.schedule(fmt.Sprint(i), r.start)
		}
		later(time.Minute)
		require.EqualValues(t, 100, r.Stats().Unclaimed)
		require.Zero(t, r.Stats().Stuck)
		r.far.comeBack()
	})
}

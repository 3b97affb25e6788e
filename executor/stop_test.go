package executor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/internal/arming"
	"github.com/orderwheel/orderwheel/wheel"
)

func TestStopWaitsForRunningHandlersAndFlushesTheirAcks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, func(context.Context, Task) error { time.Sleep(time.Minute); return nil }, func(c *Config) { c.Workers = 2 })
		for i := range 5 {
			r.schedule(fmt.Sprint(i), time.Now())
		}
		synctest.Wait()
		start := time.Now()
		require.NoError(t, r.Stop(context.Background()))
		require.Equal(t, time.Minute, time.Since(start))
		due, running := r.store.left()
		require.Equal(t, 3, due, "what was not claimed stays")
		require.Zero(t, running)
		require.NoError(t, r.Stop(context.Background()), "safe twice")
	})
}

// Case 101: a handler that never ends. Stop returns the error, the lease is
// handed back at once, and a later Stop waits for it.
func TestStopHandsBackTheLeasesOfHandlersItDoesNotWaitFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		cut := make(chan struct{})
		r := setup(t, func(ctx context.Context, task Task) error {
			<-ctx.Done()
			close(cut)
			<-release
			return nil
		})
		r.schedule("A", time.Now())
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := r.Stop(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "1 handlers are still running")
		<-cut
		due, running := r.store.left()
		require.Equal(t, 1, due)
		require.Zero(t, running)
		require.True(t, r.store.lost["A"])
		require.Equal(t, 1, r.store.attempt["A"], "the attempt counts")
		close(release)
		require.NoError(t, r.Stop(t.Context()))
		due, running = r.store.left()
		require.Equal(t, 1, due, "its late end changed nothing")
		require.Zero(t, running)
	})
}

func TestStopEndsWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, func(context.Context, Task) error { return nil })
		down := errors.New("down")
		r.store.settleErr = func() error { return down }
		r.schedule("A", time.Now())
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, r.Stop(ctx), context.DeadlineExceeded)
		_, running := r.store.left()
		require.Equal(t, 1, running, "its lease runs out")
		r.store.settleErr = nil
	})
}

func TestWhatIsOfferedAfterStopIsLeftToTheStore(t *testing.T) {
	r := setup(t, func(context.Context, Task) error { t.Error("ran"); return nil })
	require.NoError(t, r.Stop(t.Context()))
	require.Empty(t, r.Offer([]wheel.Due{{ID: "A", DueMS: 1}}, FromSweep))
	require.Zero(t, r.Ready())
}

func TestStopBeforeStart(t *testing.T) {
	e := New(Config{Store: newFakeStore(), Board: arming.New(&timers{}), NowMS: func() int64 { return 0 }, Workers: 1})
	require.NoError(t, e.Stop(t.Context()))
}

// Cases 2, 103: offers, cancels and Stop race; whatever did not run is left in
// the store.
func TestStopRacedByOffersLosesNothing(t *testing.T) {
	for range 50 {
		var runs atomic.Int64
		r := setup(t, func(context.Context, Task) error { runs.Add(1); return nil })
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := range 50 {
					id := fmt.Sprint(g, "-", i)
					now := time.Now().UnixMilli()
					r.store.schedule(id, now)
					r.Offer([]wheel.Due{{ID: id, DueMS: now}}, FromWheel)
				}
			})
		}
		require.NoError(t, r.Stop(t.Context()))
		wg.Wait()
		due, running := r.store.left()
		require.Zero(t, running)
		require.EqualValues(t, 400, int(runs.Load())+due)
	}
}

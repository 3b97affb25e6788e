package executor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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

func TestAHandlerThatStopCutsOffIsNoTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, func(ctx context.Context, _ Task) error { <-ctx.Done(); return ctx.Err() })
		r.schedule("A", time.Now())
		later(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = r.Stop(ctx)
		later(time.Second)
		require.Zero(t, r.Stats().TimedOut)
	})
}

// What a claim without an answer may have taken does not wait for the end of its lease.
func TestStopHandsBackAClaimThatHasNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, func(context.Context, Task) error { t.Error("ran"); return nil }, requireClaim)
		r.store.claimLost = true
		now := time.Now()
		first := now.UnixMilli()
		r.store.schedule("A", first)
		r.store.schedule("tried before", first)
		r.store.attempt["tried before"] = 3
		r.Offer(due(now, "A", "tried before"), FromWheel)
		later(time.Second)
		_, running := r.store.left()
		require.Equal(t, 2, running)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.NoError(t, r.Stop(ctx), "all is accounted for")
		_, running = r.store.left()
		require.Zero(t, running)
		require.Equal(t, map[string]int64{"A": first, "tried before": first}, r.store.due)
		require.Equal(t, map[string]int{"A": 0, "tried before": 3}, r.store.attempt, "uncounted")
		require.NotContains(t, slices.Collect(maps.Values(r.store.lost)), true, "no handler has seen them")
		require.Zero(t, r.Stats().LeaseLost)
	})
}

// The claim never arrived: there is nothing to hand back, and nothing to complain of.
func TestStopHandsNothingBackOfAClaimThatWasNotMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, func(context.Context, Task) error { t.Error("ran"); return nil }, requireClaim)
		r.store.claimErr = func() error { return errors.New("down") }
		r.schedule("A", time.Now())
		later(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.NoError(t, r.Stop(ctx))
		due, running := r.store.left()
		require.Equal(t, 1, due)
		require.Zero(t, running)
		require.Zero(t, r.Stats().LeaseLost)
	})
}

// The answer comes after Stop has begun: its tasks have not.
func TestStopHandsBackWhatIsClaimedAfterItBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, func(context.Context, Task) error { t.Error("ran"); return nil }, requireClaim)
		r.store.answerIn = []time.Duration{5 * time.Second}
		first := time.Now().UnixMilli()
		r.schedule("A", time.Now())
		later(time.Second)
		require.NoError(t, r.Stop(t.Context()))
		require.Equal(t, map[string]int64{"A": first}, r.store.due)
		require.Zero(t, r.store.attempt["A"])
		require.False(t, r.store.lost["A"])
	})
}

// A shard that answers nothing keeps nothing of another from being handed back: all is
// asked at once, within the last second.
func TestStopHandsBackWhatItCanWhileAShardIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		r, half := onHalf(t, func(_ context.Context, task Task) error {
			if task.ID == "far, done" {
				time.Sleep(time.Second)
			} else {
				<-release
			}
			return nil
		})
		for _, id := range []string{"far, done", "far", "near"} {
			r.schedule(id, time.Now())
		}
		later(time.Millisecond)
		half.away.Store(true)
		later(time.Second)
		r.store.schedule("far, asked", time.Now().UnixMilli())
		r.store.schedule("near, asked", time.Now().UnixMilli())
		r.Offer(due(time.Now(), "far, asked", "near, asked"), FromWheel) // one claim, answered in part
		later(time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		err := r.Stop(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "the last 3 answers", "of what is far and was claimed, or asked for")
		require.LessOrEqual(t, time.Since(start), 2*time.Second)
		r.store.mu.Lock()
		require.Contains(t, r.store.due, "near")
		require.Contains(t, r.store.due, "near, asked")
		require.NotContains(t, r.store.running, "near")
		require.Contains(t, r.store.running, "far", "its lease will run out")
		r.store.mu.Unlock()
		close(release)
		half.away.Store(false)
	})
}

// Stop gives up when a task is claimed and on its way to its worker.
func TestACallThatStopHandsBackBeforeItBeganNeverBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, func(context.Context, Task) error { t.Error("ran"); return nil }, requireClaim)
		c := &call{tasks: []*task{{id: "A", attempt: 1, stage: running}}, lease: time.Now().Add(time.Hour)}
		r.mu.Lock()
		r.mu.held["A"], r.mu.calls[c], r.mu.running = c.tasks[0], struct{}{}, 1
		r.mu.Unlock()
		taken := r.takeAll()
		require.Equal(t, handBack, taken[0].outcome.kind)
		r.release(taken)
		r.run(c)
		synctest.Wait()
		r.mu.Lock()
		require.Empty(t, r.mu.held)
		require.Zero(t, r.mu.running)
		require.Empty(t, r.mu.finished, "its end changes nothing")

		c = &call{tasks: []*task{{id: "B", attempt: 1, stage: running}}, lease: time.Now().Add(time.Hour)}
		r.mu.calls[c], r.mu.running = struct{}{}, 1
		r.mu.Unlock()
		r.giveUp()
		ctx, ok := r.begin(c)
		ctx.end(nil)
		require.False(t, ok, "Stop has given up, and takes it in a moment")
		synctest.Wait()
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.mu.calls, c)
		r.mu.running = 0
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
	r := setup(t, func(context.Context, Task) error { t.Error("ran"); return nil }, requireClaim)
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

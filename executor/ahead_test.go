package executor

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/persist"
	"github.com/orderwheel/orderwheel/wheel"
)

// storm makes n ids due now, in the order of their numbers.
func (r *rig) storm(n int) {
	now := time.Now().UnixMilli()
	list := make([]wheel.Due, n)
	for i := range list {
		list[i] = wheel.Due{ID: fmt.Sprint(i), DueMS: now - int64(n-i)}
		r.store.schedule(list[i].ID, list[i].DueMS)
	}
	r.Offer(list, FromWheel)
}

// slowFrom is a handler that takes a millisecond, and from its n-th call on until
// somebody closes leave.
func slowFrom(n int64, leave <-chan struct{}, runs *noted[string]) Handler {
	var calls atomic.Int64
	return func(_ context.Context, task Task) error {
		runs.add(task.ID)
		if calls.Add(1) < n {
			time.Sleep(time.Millisecond)
		} else {
			<-leave
		}
		return nil
	}
}

func TestWhileHandlersAreFastWorkIsClaimedAheadOldestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs noted[string]
		r := setup(t, func(_ context.Context, task Task) error {
			runs.add(task.ID)
			time.Sleep(time.Millisecond)
			return nil
		}, func(c *Config) { c.Workers = 1 })
		r.store.answerIn = slices.Repeat([]time.Duration{5 * time.Millisecond}, 1000)
		start := time.Now()
		r.storm(100)
		for r.Stats().Done < 100 {
			later(time.Millisecond)
			require.Less(t, time.Since(start), time.Minute)
		}
		// One by one it would take 6 ms for each.
		require.Less(t, time.Since(start), 300*time.Millisecond)
		require.Greater(t, r.store.maxClaim, 1)
		for i, id := range runs.all() {
			require.Equal(t, fmt.Sprint(i), id)
		}
		require.Zero(t, r.mu.ahead+len(r.mu.claimed)+r.mu.running)
	})
}

func TestWhatIsClaimedAheadAndNotYetAckedIsBounded(t *testing.T) {
	for _, workers := range []int{1, 64, 4000} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := setup(t, func(context.Context, Task) error { return nil }, func(c *Config) { c.Workers = workers })
				r.storm(20_000)
				later(time.Minute)
				require.EqualValues(t, 20_000, r.Stats().Done)
				require.LessOrEqual(t, r.store.maxClaim, persist.MaxBatch)
				require.LessOrEqual(t, r.store.maxHeld, (unsettledPerWorker+1)*workers+persist.MaxBatch)
			})
		})
	}
}

func TestWhileHandlersAreSlowNothingIsClaimedAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, func(context.Context, Task) error { time.Sleep(200 * time.Millisecond); return nil },
			func(c *Config) { c.Workers = 8 })
		r.storm(100)
		later(25 * time.Millisecond) // what has just finished is not acked yet
		for range 10 {
			later(50 * time.Millisecond)
			_, running := r.store.left()
			require.LessOrEqual(t, running, 8)
		}
	})
}

// One of them may kill its process, and what is claimed with it loses an attempt then.
func TestWhatWasReapedIsClaimedForFreeWorkersOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, func(context.Context, Task) error { time.Sleep(time.Millisecond); return nil },
			func(c *Config) { c.Workers = 2 })
		r.storm(200)
		later(time.Second)
		require.Greater(t, r.store.maxClaim, 2, "claimed ahead")

		r.store.mu.Lock()
		r.store.maxClaim = 0
		r.store.mu.Unlock()
		now := time.Now().UnixMilli()
		var list []wheel.Due
		for i := range 200 {
			list = append(list, wheel.Due{ID: fmt.Sprint("reaped ", i), DueMS: now - int64(200-i)})
			r.store.schedule(list[i].ID, list[i].DueMS)
		}
		require.Len(t, r.OfferReaped(list), 200)
		later(time.Second)
		require.Equal(t, 2, r.store.maxClaim)
		require.EqualValues(t, 400, r.Stats().Done)
	})
}

// The workers were fast when it was claimed, and are held up now. Others run it.
func TestWhatWaitsTooLongForAWorkerGoesBackUncounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs noted[string]
		leave := make(chan struct{})
		r := setup(t, slowFrom(50, leave, &runs), func(c *Config) { c.Workers, c.HandlerTimeout = 2, 2*time.Hour })
		r.storm(200)
		later(time.Second)
		_, running := r.store.left()
		require.Greater(t, running, 2, "claimed ahead")
		later(20 * time.Second) // two thirds of a lease
		due, running := r.store.left()
		require.Equal(t, 2, running, "with their handlers")
		require.Equal(t, 200-len(runs.all()), due)
		for _, attempts := range r.store.attempts() {
			require.Zero(t, attempts)
		}
		require.Zero(t, r.Stats().LeaseLost)
		close(leave)
		later(time.Minute)
		require.EqualValues(t, 200, r.Stats().Done)
	})
}

func TestStopHandsBackAtOnceWhatWasClaimedAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs noted[string]
		leave := make(chan struct{})
		r := setup(t, slowFrom(50, leave, &runs), func(c *Config) { c.Workers, c.HandlerTimeout = 2, 2*time.Hour })
		r.storm(200)
		later(time.Second)
		stopped := make(chan error)
		go func() { stopped <- r.Stop(context.Background()) }()
		later(time.Second)
		due, running := r.store.left()
		require.Equal(t, 2, running, "with their handlers")
		require.Equal(t, 200-len(runs.all()), due)
		close(leave)
		require.NoError(t, <-stopped)
		_, running = r.store.left()
		require.Zero(t, running)
	})
}

func TestAWorkerWhoseHandlerEndsItsGoroutineLeavesWhatWaitsToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		r := setup(t, func(_ context.Context, task Task) error {
			if runs.Add(1); task.Attempt == 1 {
				runtime.Goexit()
			}
			return nil
		}, func(c *Config) { c.Workers = 3 })
		r.storm(300)
		later(time.Minute)
		require.EqualValues(t, 600, runs.Load())
		require.EqualValues(t, 300, r.Stats().Done)
		require.EqualValues(t, 300, r.Stats().Panicked)
	})
}

func TestBatchesAreClaimedAheadInWholeOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sizes noted[int]
		r := batches(t, 10, func(_ context.Context, tasks []Task) []error {
			sizes.add(len(tasks))
			time.Sleep(time.Millisecond)
			return make([]error, len(tasks))
		}, func(c *Config) { c.Workers = 2 })
		r.storm(1000)
		later(time.Minute)
		require.EqualValues(t, 1000, r.Stats().Done)
		require.LessOrEqual(t, slices.Max(sizes.all()), 10)
		require.Less(t, len(sizes.all()), 120)
	})
}

// One that finishes while others are at work waits for them a moment, and not longer.
func TestFinishedTasksAreSettledTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, func(_ context.Context, task Task) error {
			n, _ := strconv.Atoi(task.ID)
			time.Sleep(time.Duration(n) * gatherFor / 50)
			return nil
		}, func(c *Config) { c.Workers = 100 })
		var asked atomic.Int64
		r.store.settleErr = func() error { asked.Add(1); return nil }
		r.storm(100)
		later(gatherFor + gatherFor/2)
		require.Greater(t, r.Stats().Done, uint64(40))
		require.LessOrEqual(t, asked.Load(), int64(2), "what finished within a millisecond came together")
		later(time.Second)
		require.EqualValues(t, 100, r.Stats().Done)
		require.LessOrEqual(t, asked.Load(), int64(4))
	})
}

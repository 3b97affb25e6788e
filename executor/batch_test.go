package executor

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// batches is a setup with a BatchHandler.
func batches(t *testing.T, size int, handler BatchHandler, change ...func(*Config)) *rig {
	t.Helper()
	return setup(t, nil, append([]func(*Config){func(c *Config) { c.BatchHandler, c.BatchSize = handler, size }}, change...)...)
}

func TestABatchHasWhatWasDueButNeverMoreThanBatchSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sizes noted[int]
		var now, most atomic.Int64
		r := batches(t, 10, func(_ context.Context, tasks []Task) []error {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			sizes.add(len(tasks))
			time.Sleep(time.Second)
			return make([]error, len(tasks))
		}, func(c *Config) { c.Workers = 3 })
		r.schedule("first", time.Now())
		later(time.Millisecond)
		require.Equal(t, []int{1}, sizes.all(), "it waits for no other")
		for i := range 95 {
			r.schedule(fmt.Sprint(i), time.Now().Add(time.Millisecond))
		}
		later(time.Minute)
		require.EqualValues(t, 96, r.Stats().Done)
		require.LessOrEqual(t, most.Load(), int64(3), "a batch has one worker")
		for _, n := range sizes.all() {
			require.LessOrEqual(t, n, 10)
		}
		require.LessOrEqual(t, len(sizes.all()), 1+10+3)
		require.LessOrEqual(t, r.store.maxClaim, 3*10, "no more is claimed than Workers x BatchSize")
		require.Zero(t, r.Stats().Running)
		require.Zero(t, r.mu.spare)
	})
}

func TestEachTaskOfABatchComesToItsOwnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var again noted[string]
		var bad *nilError
		r := batches(t, 100, func(_ context.Context, tasks []Task) []error {
			errs := make([]error, len(tasks))
			for i, task := range tasks {
				if time.Since(start) > 0 {
					again.add(fmt.Sprint(task.ID, " ", task.Attempt, " after ", time.Since(start)))
					continue
				}
				errs[i] = map[string]error{
					"fails": errors.New("no"), "later": RetryAt(start.Add(time.Hour)), "never": Permanent(errors.New("no")), "bad": bad,
				}[task.ID]
			}
			return errs
		})
		for _, id := range []string{"done", "fails", "later", "never", "bad"} {
			r.store.schedule(id, start.UnixMilli())
		}
		r.Offer(due(start, "done", "fails", "later", "never", "bad"), FromWheel)
		later(24 * time.Hour)
		require.ElementsMatch(t, []string{"fails 2 after 1s", "bad 2 after 1s", "later 1 after 1h0m0s"}, again.all())
		require.Equal(t, map[string]string{"never": "no"}, r.store.dead)
		s := r.Stats()
		require.EqualValues(t, 4, s.Done)
		require.EqualValues(t, 3, s.Failed)
		require.EqualValues(t, 1, s.Panicked)
		require.EqualValues(t, 2, s.Retried)
		require.EqualValues(t, 1, s.Postponed)
		require.EqualValues(t, 1, s.Dead)
	})
}

func TestABatchThatGoesWrongAsAWholeFailsAllItsTasks(t *testing.T) {
	for name, wrong := range map[string]func(n int) []error{
		"too few errors":  func(n int) []error { return make([]error, n-1) },
		"too many errors": func(n int) []error { return make([]error, n+1) },
		"none":            func(int) []error { return nil },
		"panic":           func(int) []error { panic("no") },
		"goexit":          func(int) []error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := batches(t, 100, func(_ context.Context, tasks []Task) []error {
					if tasks[0].Attempt == 1 {
						return wrong(len(tasks))
					}
					return make([]error, len(tasks))
				})
				now := time.Now()
				for i := range 5 {
					r.store.schedule(fmt.Sprint(i), now.UnixMilli())
				}
				r.Offer(due(now, "0", "1", "2", "3", "4"), FromWheel)
				later(time.Minute)
				require.EqualValues(t, 5, r.Stats().Failed)
				require.EqualValues(t, 5, r.Stats().Done)
			})
		})
	}
}

// One lease that is lost ends the whole batch: its transaction has that task in it.
func TestABatchsCtxEndsWhenALeaseOfItIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var causes noted[error]
		r := batches(t, 100, func(ctx context.Context, tasks []Task) []error {
			if tasks[0].Attempt > 1 {
				return make([]error, len(tasks))
			}
			<-ctx.Done()
			causes.add(context.Cause(ctx))
			return []error{ctx.Err(), ctx.Err(), ctx.Err()}
		}, func(c *Config) { c.Lease, c.HandlerTimeout = 6*time.Second, time.Minute })
		now := time.Now()
		for _, id := range []string{"A", "B", "C"} {
			r.store.schedule(id, now.UnixMilli())
		}
		r.Offer(due(now, "A", "B", "C"), FromWheel)
		later(time.Second)
		r.store.mu.Lock()
		r.store.running["B"].token = "another's"
		r.store.mu.Unlock()
		later(time.Minute)
		require.Equal(t, []error{ErrLeaseLost}, causes.all())
		require.EqualValues(t, 1, r.Stats().LeaseLost)
		require.EqualValues(t, 2, r.Stats().Done, "the others are tried again")
		require.Equal(t, "another's", r.store.running["B"].token)
	})
}

// The renewals of a part are not answered: the batch's ctx ends with the first lease.
func TestABatchIsRenewedAsAWholeOrNotAtAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var at noted[time.Duration]
		r, half := onHalf(t, nil, func(c *Config) {
			c.Lease, c.HandlerTimeout, c.Workers = 30*time.Second, 2*time.Minute, 1
			c.BatchSize = 100
			c.ShardOf = nil // one claim, and so one batch
			c.BatchHandler = func(ctx context.Context, tasks []Task) []error {
				if at.all() == nil {
					<-ctx.Done()
					at.add(time.Since(start))
				}
				return make([]error, len(tasks))
			}
		})
		r.store.schedule("far", start.UnixMilli())
		r.store.schedule("near", start.UnixMilli())
		r.Offer(due(start, "far", "near"), FromWheel)
		later(time.Second)
		half.away.Store(true)
		later(time.Minute)
		require.Len(t, at.all(), 1)
		require.LessOrEqual(t, at.all()[0], 30*time.Second)
		half.away.Store(false)
		later(time.Minute)
	})
}

func TestABatchThatIsStuckKeepsNoneOfItsTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leave := make(chan struct{})
		var calls atomic.Int64
		r := batches(t, 100, func(_ context.Context, tasks []Task) []error {
			if calls.Add(1) == 1 {
				<-leave
			}
			return make([]error, len(tasks))
		}, func(c *Config) { c.Workers, c.Lease, c.HandlerTimeout = 1, 6*time.Second, 6*time.Second })
		now := time.Now()
		for _, id := range []string{"A", "B", "C"} {
			r.store.schedule(id, now.UnixMilli())
		}
		r.Offer(due(now, "A", "B", "C"), FromWheel)
		later(time.Minute)
		reaped := r.store.reap()
		require.Len(t, reaped, 3)
		require.Len(t, r.OfferReaped(reaped), 3)
		later(time.Second)
		require.EqualValues(t, 3, r.Stats().Done)
		close(leave)
		later(time.Second)
		require.EqualValues(t, 3, r.Stats().LeaseLost)
		require.Zero(t, r.Stats().Running)
		require.Zero(t, r.mu.spare)
	})
}

// The settler sleeps, and the call that wakes it has fewer tasks to tell of than it had.
func TestWhatIsLeftOfABatchWithALostLeaseIsSettledWhileOthersAreAtWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := batches(t, 2, func(ctx context.Context, tasks []Task) []error {
			if tasks[0].ID == "long" {
				time.Sleep(time.Hour)
			} else {
				<-ctx.Done()
			}
			return make([]error, len(tasks))
		}, func(c *Config) { c.Workers, c.Lease, c.HandlerTimeout = 2, 6*time.Second, 2*time.Hour })
		now := time.Now()
		for _, id := range []string{"mine", "taken", "long"} {
			r.store.schedule(id, now.UnixMilli())
		}
		r.Offer(due(now, "mine", "taken"), FromWheel)
		later(time.Millisecond)
		r.Offer(due(now, "long"), FromWheel)
		later(time.Second)
		r.store.mu.Lock()
		r.store.running["taken"].token = "another's"
		r.store.mu.Unlock()
		later(2 * time.Second)
		require.EqualValues(t, 1, r.Stats().LeaseLost)
		require.EqualValues(t, 1, r.Stats().Done, "mine")
		later(2 * time.Hour)
	})
}

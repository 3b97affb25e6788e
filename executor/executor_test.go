package executor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/orderwheel/orderwheel/persist"
	"github.com/orderwheel/orderwheel/wheel"
)

// Case 104: no goroutine is left after Stop, which ends each test here.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).purgeStaleWorkers"),
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).ticktock"))
}

func TestADueTaskIsRunOnceAndAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []Task
		r := setup(t, func(_ context.Context, task Task) error { got = append(got, task); return nil })
		at := time.Now().Add(time.Minute)
		r.schedule("A", at)
		later(time.Hour)
		require.Len(t, got, 1)
		require.Equal(t, "A", got[0].ID)
		require.Equal(t, 1, got[0].Attempt)
		require.Equal(t, at.UnixMilli(), got[0].Due.UnixMilli())
		require.False(t, got[0].Now.Before(got[0].Due.Truncate(time.Millisecond)))
		require.Equal(t, FromWheel, got[0].Source)
		due, running := r.store.left()
		require.Zero(t, due+running)
		require.EqualValues(t, 1, r.Stats().Done)
		require.EqualValues(t, 1, r.Stats().Lateness.Counts[0])
	})
}

// Cases 7, 99, 118: a handler that fails, panics or ends its goroutine is
// retried with backoff, and the process lives.
func TestAFailedAttemptIsRetriedWithBackoff(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error":        func() error { return errors.New("no") },
		"panic":        func() error { panic("no") },
		"panic error":  func() error { panic(errors.New("no")) },
		"nil call":     func() error { var f func() error; return f() },
		"goexit":       func() error { runtime.Goexit(); return nil },
		"wrapped":      func() error { return fmt.Errorf("close: %w", context.DeadlineExceeded) },
		"joined error": func() error { return errors.Join(errors.New("a"), errors.New("b")) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				var at []time.Duration
				var attempts []int
				r := setup(t, func(_ context.Context, task Task) error {
					at, attempts = append(at, time.Since(start)), append(attempts, task.Attempt)
					require.Equal(t, start.UnixMilli(), task.Due.UnixMilli(), "a retry does not change the first due time")
					if task.Attempt < 4 {
						return fail()
					}
					return nil
				})
				r.schedule("A", start)
				later(time.Hour)
				require.Equal(t, []int{1, 2, 3, 4}, attempts)
				require.Equal(t, []time.Duration{0, 1 * time.Second, 3 * time.Second, 7 * time.Second}, at)
				require.EqualValues(t, 3, r.Stats().Failed)
				require.EqualValues(t, 3, r.Stats().Retried)
				require.EqualValues(t, 1, r.Stats().Done)
			})
		})
	}
}

func TestARetryAtIsNotCountedAsAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var attempts []int
		r := setup(t, func(_ context.Context, task Task) error {
			attempts = append(attempts, task.Attempt)
			if time.Since(start) < time.Minute {
				return fmt.Errorf("extended: %w", RetryAt(start.Add(time.Minute)))
			}
			return nil
		})
		r.schedule("A", start)
		later(time.Hour)
		require.Equal(t, []int{1, 1}, attempts)
		require.EqualValues(t, 0, r.Stats().Failed)
		require.EqualValues(t, 1, r.Stats().Postponed)
	})
}

// nilError is an error that panics when it is looked into, as a nil
// *fs.PathError does.
type nilError struct{ err error }

func (e *nilError) Error() string { return e.err.Error() }
func (e *nilError) Unwrap() error { return e.err }

func TestAnErrorThatCannotBeLookedIntoKeepsNoWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		r := setup(t, func(context.Context, Task) error {
			if runs++; runs <= 3 {
				var e *nilError
				return e
			}
			return nil
		}, func(c *Config) { c.Workers = 1 })
		r.schedule("A", time.Now())
		later(time.Hour)
		require.Equal(t, 4, runs)
		require.EqualValues(t, 3, r.Stats().Panicked)
	})
}

// endsItsGoroutine is an error that ends the goroutine of who looks into it.
type endsItsGoroutine struct{}

func (endsItsGoroutine) Error() string { return "no" }
func (endsItsGoroutine) Unwrap() error { runtime.Goexit(); return nil }

func TestAnErrorThatEndsTheGoroutineIsAFailedAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var at noted[time.Duration]
		r := setup(t, func(context.Context, Task) error {
			if at.add(time.Since(start)) <= 2 {
				return endsItsGoroutine{}
			}
			return nil
		}, func(c *Config) { c.Workers = 1 })
		r.schedule("A", start)
		later(time.Hour)
		require.Equal(t, []time.Duration{0, time.Second, 3 * time.Second}, at.all(), "with backoff")
		require.EqualValues(t, 1, r.Stats().Done)
	})
}

// A backoff beyond what the store can hold must not keep the others' answers from it.
func TestAHugeBackoffIsHeldWithinTheStoresLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, func(context.Context, Task) error { return errors.New("no") },
			func(c *Config) { c.Backoff = Backoff{Base: math.MaxInt64, Cap: math.MaxInt64, Jitter: 0.2} })
		far := time.Date(9990, 1, 1, 0, 0, 0, 0, time.UTC)
		r.cfg.NowMS = func() int64 { return far.UnixMilli() }
		r.schedule("A", time.Now())
		later(time.Minute)
		r.store.mu.Lock()
		defer r.store.mu.Unlock()
		require.Equal(t, map[string]int64{"A": persist.MaxDueMS}, r.store.due)
		r.wheel.Cancel("A")
	})
}

func TestARetryAtThatHasPassedIsNoHotLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		r := setup(t, func(_ context.Context, task Task) error {
			if runs.Add(1) < 5 {
				return RetryAt(task.Now)
			}
			return nil
		})
		r.schedule("A", time.Now())
		later(3500 * time.Millisecond)
		require.EqualValues(t, 4, runs.Load())
		later(time.Second)
		require.EqualValues(t, 5, runs.Load())
	})
}

// Cases 96, 97, 120: all run, at most Workers at once, and no more are claimed
// than there are free workers.
func TestAllRunAtMostWorkersAtOnce(t *testing.T) {
	for _, workers := range []int{1, 2, 8} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var now, most atomic.Int64
				var runs atomic.Int64
				r := setup(t, func(context.Context, Task) error {
					n := now.Add(1)
					for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
					}
					time.Sleep(time.Second)
					now.Add(-1)
					runs.Add(1)
					return nil
				}, func(c *Config) { c.Workers = workers })
				for i := range 100 {
					r.schedule(fmt.Sprint(i), time.Now().Add(time.Second))
				}
				later(time.Hour)
				require.EqualValues(t, 100, runs.Load())
				require.EqualValues(t, workers, most.Load())
				require.LessOrEqual(t, r.store.maxClaim, workers)
				// A task that has returned may still wait for its ack while its
				// worker has the next.
				require.LessOrEqual(t, r.store.maxHeld, 2*workers)
			})
		})
	}
}

// Cases 30, 66: a storm takes no goroutine per task.
func TestAStormRunsOnThePoolAlone(t *testing.T) {
	var runs atomic.Int64
	finished := make(chan struct{})
	const n = 100_000
	var most atomic.Int64
	r := setup(t, func(context.Context, Task) error {
		if i := runs.Add(1); i == n {
			close(finished)
		} else if i%1000 == 0 {
			most.Store(max(most.Load(), int64(runtime.NumGoroutine())))
		}
		return nil
	}, func(c *Config) { c.Workers = 64 })
	before := int64(runtime.NumGoroutine())
	now := time.Now().UnixMilli()
	due := make([]wheel.Due, n)
	for i := range due {
		due[i] = wheel.Due{ID: fmt.Sprint(i), DueMS: now}
		r.store.schedule(due[i].ID, now)
	}
	r.Offer(due, FromWheel)
	select {
	case <-finished:
	case <-time.After(60 * time.Second):
		t.Fatal("the storm did not end")
	}
	require.LessOrEqual(t, most.Load(), before+2*64)
	require.Empty(t, r.mu.fresh.items)
}

func TestAnIdHeldHereIsNotTakenTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		r := setup(t, func(context.Context, Task) error { runs.Add(1); time.Sleep(time.Second); return nil },
			func(c *Config) { c.Workers = 1 })
		now := time.Now().UnixMilli()
		a, b := wheel.Due{ID: "A", DueMS: now}, wheel.Due{ID: "B", DueMS: now}
		r.store.schedule("A", now)
		r.store.schedule("B", now)
		require.Equal(t, []wheel.Due{a, b}, r.Offer([]wheel.Due{a, b}, FromSweep))
		require.Empty(t, r.Offer([]wheel.Due{b, b, a}, FromSweep))
		synctest.Wait()
		require.Empty(t, r.Offer([]wheel.Due{a}, FromSweep), "at work")
		later(time.Hour)
		require.EqualValues(t, 2, runs.Load())
		require.EqualValues(t, 0, r.Stats().Gone, "nothing was claimed in vain")
		require.Equal(t, []wheel.Due{a}, r.Offer([]wheel.Due{a}, FromSweep), "let go once settled")
	})
}

func TestALongListIsTakenInPartByPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		offered := make(chan struct{})
		r := setup(t, func(context.Context, Task) error { <-offered; runs.Add(1); return nil })
		const n = 2*offerMost + 1
		var list []wheel.Due
		for i := range n {
			list = append(list, wheel.Due{ID: fmt.Sprint(i), DueMS: time.Now().UnixMilli()})
			r.store.schedule(list[i].ID, list[i].DueMS)
		}
		require.Equal(t, list, r.Offer(append(list, list[0], list[n-1]), FromRecovery), "each once, in order")
		close(offered)
		later(time.Minute)
		require.EqualValues(t, n, runs.Load())
	})
}

// Case 17: scheduled again while running; the wheel fires before the first run
// is settled.
func TestAnIdThatTheWheelFiresWhileAtWorkRunsAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		var r *rig
		r = setup(t, func(context.Context, Task) error {
			if runs++; runs == 1 {
				time.Sleep(10 * time.Second)
				r.store.schedule("A", time.Now().UnixMilli()) // as the ack of a task with a successor leaves it
			}
			return nil
		})
		r.schedule("A", time.Now())
		synctest.Wait()
		r.cfg.Board.UserScheduled("A", time.Now().Add(time.Second).UnixMilli())
		later(time.Hour)
		require.Equal(t, 2, runs)
	})
}

func TestATaskThatIsDueLaterIsArmedByTheStoresClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var ran time.Duration
		r := setup(t, func(context.Context, Task) error { ran = time.Since(start); return nil })
		r.store.schedule("A", start.Add(time.Hour).UnixMilli())
		r.Offer([]wheel.Due{{ID: "A", DueMS: start.UnixMilli()}}, FromWheel)
		later(2 * time.Hour)
		require.Equal(t, time.Hour, ran)
		require.EqualValues(t, 1, r.Stats().NotYet, "it was not asked for again and again")
	})
}

// A local clock that runs ahead makes a claim come early: it must neither run
// nor be asked for in a loop.
func TestAClockThatRunsAheadMakesNoTaskEarlyAndNoHotLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var ran time.Duration
		r := setup(t, func(context.Context, Task) error { ran = time.Since(start); return nil },
			func(c *Config) { c.NowMS = func() int64 { return time.Now().Add(time.Hour).UnixMilli() } })
		r.store.schedule("A", start.Add(10*time.Second).UnixMilli())
		r.Offer([]wheel.Due{{ID: "A", DueMS: start.UnixMilli()}}, FromWheel)
		later(3 * time.Hour)
		require.GreaterOrEqual(t, ran, 10*time.Second)
		require.LessOrEqual(t, r.Stats().NotYet, uint64(2))
	})
}

// Cases 35, 42, 83: while the store does not answer nothing is lost, and the claim
// keeps its token.
func TestAClaimIsRepeatedUnderItsTokenUntilAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		r := setup(t, func(context.Context, Task) error { runs.Add(1); return nil }, requireClaim)
		failures := 5
		r.store.claimErr = func() error {
			if failures > 0 {
				failures--
				return errors.New("down")
			}
			return nil
		}
		r.schedule("A", time.Now())
		later(time.Hour)
		require.EqualValues(t, 1, runs.Load())
		require.Len(t, r.store.tokens, 6)
		for _, token := range r.store.tokens {
			require.Equal(t, r.store.tokens[0], token)
		}
		r.schedule("B", time.Now())
		later(time.Hour)
		require.NotEqual(t, r.store.tokens[0], r.store.tokens[6], "every claim has a token of its own")
	})
}

// Case 84: acks are kept while the store does not take them.
func TestAnAckIsRepeatedUntilAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		r := setup(t, func(context.Context, Task) error { runs.Add(1); return nil })
		failures := 5
		r.store.settleErr = func() error {
			if failures > 0 {
				failures--
				return errors.New("READONLY")
			}
			return nil
		}
		r.schedule("A", time.Now())
		later(time.Hour)
		due, running := r.store.left()
		require.Zero(t, due+running)
		require.EqualValues(t, 1, runs.Load())
		require.EqualValues(t, 1, r.Stats().Done)
	})
}

// Case 115: the lease ran out and somebody else has the task: the late answer
// is refused and counted.
func TestALateAnswerIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *rig
		r = setup(t, func(context.Context, Task) error {
			r.store.mu.Lock()
			r.store.running["A"].token = "another's"
			r.store.mu.Unlock()
			return nil
		})
		r.schedule("A", time.Now())
		later(time.Minute)
		require.EqualValues(t, 1, r.Stats().LeaseLost)
		require.EqualValues(t, 0, r.Stats().Done)
		_, running := r.store.left()
		require.Equal(t, 1, running)
		require.Zero(t, r.wheel.Len())
	})
}

// A claim that was answered after its lease: the task may be another's by now, or
// cancelled, or moved.
func TestNoHandlerBeginsAfterItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var tasks []Task
		var at time.Duration
		r := setup(t, func(_ context.Context, task Task) error {
			tasks, at = append(tasks, task), time.Since(start)
			return nil
		}, requireClaim)
		r.store.answerIn = []time.Duration{r.cfg.Lease}
		r.schedule("A", start)
		later(time.Hour)
		require.Equal(t, r.cfg.Lease, at)
		require.Len(t, r.store.tokens, 2, "not under the first claim")
		require.Len(t, tasks, 1)
		require.Equal(t, 1, tasks[0].Attempt)
		require.Equal(t, start.UnixMilli(), tasks[0].Due.UnixMilli(), "handed back as it was")
	})
}

func TestBothReadyListsGiveHalfOfAClaimOldestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var order []string
		r := setup(t, func(_ context.Context, task Task) error {
			mu.Lock()
			order = append(order, task.ID)
			mu.Unlock()
			time.Sleep(time.Second)
			return nil
		}, func(c *Config) { c.Workers = 1 })
		now := time.Now().UnixMilli()
		offer := func(id string, dueMS int64) {
			r.store.schedule(id, dueMS)
			r.Offer([]wheel.Due{{ID: id, DueMS: dueMS}}, FromWheel)
		}
		offer("first", now)
		synctest.Wait()
		for i := range 3 {
			offer(fmt.Sprint("old", i), now-10_000+int64(3-i))
			offer(fmt.Sprint("new", i), now-int64(i))
		}
		r.mu.Lock()
		r.cfg.Workers = 4
		r.mu.Unlock()
		batch := r.take().parts[0]
		var ids []string
		for _, task := range batch.tasks {
			ids = append(ids, task.id)
		}
		require.Equal(t, []string{"new2", "old2", "new1"}, ids)
		r.heard(batch, answers{dropped: batch.tasks})
	})
}

func TestNoReadyListStarvesWhereWorkersAreFreeOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs noted[string]
		r := setup(t, func(_ context.Context, task Task) error {
			runs.add(task.ID)
			time.Sleep(100 * time.Millisecond)
			return nil
		}, func(c *Config) { c.Workers = 1 })
		start := time.Now()
		var old []wheel.Due
		for i := range 20 {
			d := wheel.Due{ID: fmt.Sprint("old ", i), DueMS: start.Add(-time.Hour).UnixMilli()}
			r.store.schedule(d.ID, d.DueMS)
			old = append(old, d)
		}
		for i := range 100 { // twice what the worker can do
			r.schedule(fmt.Sprint("new ", i), start.Add(time.Duration(i)*50*time.Millisecond))
		}
		r.Offer(old, FromSweep)
		later(4 * time.Second)
		ran := map[bool]int{}
		for _, id := range runs.all() {
			ran[strings.HasPrefix(id, "old")]++
		}
		require.InDelta(t, 20, ran[true], 2)
		require.InDelta(t, 20, ran[false], 2)
	})
}

func TestQueueGivesTheOldestFirst(t *testing.T) {
	var q queue
	for i := range 2000 {
		q.push(entry{ms: int64(i * 7919 % 2003)})
	}
	last := int64(-1)
	for q.len() > 0 {
		next := q.pop().ms
		require.GreaterOrEqual(t, next, last)
		last = next
	}
	require.Nil(t, q.items, "an emptied queue keeps no memory of the storm")
}

func TestBackoffDoublesUpToItsCapWithinItsJitter(t *testing.T) {
	b := Backoff{Base: time.Second, Cap: time.Minute}
	for attempt, want := range map[int]time.Duration{1: 1, 2: 2, 3: 4, 6: 32, 7: 60, 8: 60, 1 << 30: 60} {
		require.Equal(t, want*time.Second, b.After(attempt))
	}
	huge := Backoff{Base: math.MaxInt64 / 3 * 2, Cap: math.MaxInt64, Jitter: 1}
	for attempt := range 100 {
		require.GreaterOrEqual(t, huge.After(attempt), time.Duration(0))
	}
	b.Jitter = 0.2
	low, high := time.Hour, time.Duration(0)
	for range 1000 {
		d := b.After(1)
		low, high = min(low, d), max(high, d)
	}
	require.GreaterOrEqual(t, low, 800*time.Millisecond)
	require.LessOrEqual(t, high, 1200*time.Millisecond)
	require.Less(t, low, high)
}

func TestRetryAtIsRoundedUpAndHeldWithinTheStoresLimits(t *testing.T) {
	base := time.UnixMilli(1_700_000_000_000)
	require.EqualValues(t, 1_700_000_000_000, ceilMS(base))
	require.EqualValues(t, 1_700_000_000_001, ceilMS(base.Add(time.Nanosecond)))
	require.EqualValues(t, 0, ceilMS(time.Time{}))
	for _, at := range []time.Time{time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(math.MaxInt64/2, 0), time.UnixMilli(persist.MaxDueMS).Add(1)} {
		require.EqualValues(t, persist.MaxDueMS, ceilMS(at))
	}
	require.EqualValues(t, 0, ceilMS(time.Unix(math.MinInt64/2, 0)))
}

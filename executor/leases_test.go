package executor

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// ended is when and why a handler's ctx ended.
type ended struct {
	after time.Duration
	err   error
	cause error
}

// heeds is a handler that works until its ctx ends, the first time.
func heeds(notes *noted[ended]) Handler {
	start := time.Now()
	return func(ctx context.Context, task Task) error {
		if task.Attempt > 1 {
			return nil
		}
		<-ctx.Done()
		notes.add(ended{time.Since(start), ctx.Err(), context.Cause(ctx)})
		return ctx.Err()
	}
}

func TestALeaseIsRenewedForAsLongAsItsHandlerMayTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var notes noted[ended]
		r := setup(t, heeds(&notes), func(c *Config) { c.Lease, c.HandlerTimeout = 6*time.Second, time.Minute })
		r.schedule("A", time.Now())
		for range 100 {
			later(599 * time.Millisecond)
			require.Empty(t, r.store.reap(), "its lease never ran out")
		}
		require.Empty(t, notes.all())
		later(time.Second)
		require.Equal(t, []ended{{time.Minute, context.DeadlineExceeded, context.DeadlineExceeded}}, notes.all())
		s := r.Stats()
		require.EqualValues(t, 1, s.TimedOut)
		require.EqualValues(t, 1, s.Failed)
		require.EqualValues(t, 1, s.Retried)
		require.Zero(t, s.LeaseLost)
	})
}

func TestAHandlerThatIsQuickCostsNoRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, func(context.Context, Task) error { time.Sleep(time.Second); return nil },
			func(c *Config) { c.Lease, c.HandlerTimeout = 6*time.Second, time.Minute })
		for i := range 20 {
			r.schedule(fmt.Sprint(i), time.Now().Add(time.Duration(i)*time.Second))
		}
		later(time.Minute)
		require.EqualValues(t, 20, r.Stats().Done)
		require.Empty(t, r.store.renewed)
	})
}

// A lease that lasts until the handler's time is up, and a little longer, is enough.
func TestALeaseIsNotRenewedBeyondNeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var notes noted[ended]
		r := setup(t, heeds(&notes), func(c *Config) { c.Lease, c.HandlerTimeout = 6*time.Second, 4*time.Second })
		r.schedule("A", time.Now())
		later(5 * time.Second)
		require.Equal(t, []ended{{4 * time.Second, context.DeadlineExceeded, context.DeadlineExceeded}}, notes.all())
		require.Empty(t, r.store.renewed)
	})
}

func TestRenewalsThatComeTogetherAreAskedInOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, func(context.Context, Task) error { time.Sleep(5 * time.Second); return nil },
			func(c *Config) { c.Workers, c.Lease, c.HandlerTimeout = 50, 6*time.Second, time.Minute })
		for i := range 50 {
			r.schedule(fmt.Sprint(i), time.Now().Add(time.Duration(i)*time.Millisecond/10))
		}
		later(time.Minute)
		require.EqualValues(t, 50, r.Stats().Done)
		require.LessOrEqual(t, len(r.store.renewed), 4)
	})
}

// A refusal says that somebody took the task back: what this handler does may be
// another's work by now.
func TestARefusedRenewalEndsTheHandlersCtx(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var notes noted[ended]
		r := setup(t, heeds(&notes), func(c *Config) { c.Lease, c.HandlerTimeout = 6*time.Second, time.Minute })
		r.schedule("A", time.Now())
		later(time.Second)
		r.store.mu.Lock()
		r.store.running["A"].token = "another's"
		r.store.mu.Unlock()
		later(2 * time.Second)
		got := notes.all()
		require.Len(t, got, 1)
		require.ErrorIs(t, got[0].err, context.Canceled)
		require.ErrorIs(t, got[0].cause, ErrLeaseLost)
		require.InDelta(t, 2*time.Second, got[0].after, float64(time.Second/10), "a third of the lease")
		later(time.Minute)
		require.EqualValues(t, 1, r.Stats().LeaseLost, "told once")
		require.Equal(t, "another's", r.store.running["A"].token)
		require.Empty(t, r.mu.held)
	})
}

// With the store away nobody knows whether the lease was made longer: it may be over
// when the last answer says so, and another may run the task then.
func TestAHandlersCtxEndsWithItsLeaseWhileNoRenewalIsAnswered(t *testing.T) {
	for name, away := range map[string]func(*rig) func() error{
		"an error at once": func(*rig) func() error { return func() error { return errors.New("down") } },
		"no answer": func(r *rig) func() error {
			return func() error {
				r.store.mu.Unlock()
				time.Sleep(time.Second)
				r.store.mu.Lock()
				return context.DeadlineExceeded
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var notes noted[ended]
				r := setup(t, heeds(&notes), func(c *Config) { c.Lease, c.HandlerTimeout = 6*time.Second, time.Minute })
				r.schedule("A", time.Now())
				later(5 * time.Second) // renewed at 2 s and 4 s: until 10 s
				r.store.mu.Lock()
				r.store.renewErr = away(r)
				r.store.mu.Unlock()
				later(10 * time.Second)
				got := notes.all()
				require.Len(t, got, 1)
				require.ErrorIs(t, got[0].cause, ErrLeaseLost)
				require.LessOrEqual(t, got[0].after, 10*time.Second)
				require.Greater(t, got[0].after, 9*time.Second)
				require.Less(t, len(r.store.renewed), 12, "asked again, but not in a hot loop")
				r.store.mu.Lock()
				r.store.renewErr = nil
				r.store.mu.Unlock()
			})
		})
	}
}

func TestARenewalThatIsAnsweredLateIsGoodForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failures := 2
		r := setup(t, func(ctx context.Context, _ Task) error {
			select {
			case <-time.After(20 * time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}, func(c *Config) { c.Lease, c.HandlerTimeout = 6*time.Second, time.Minute })
		r.store.renewErr = func() error {
			if failures > 0 {
				failures--
				return errors.New("LOADING")
			}
			return nil
		}
		r.schedule("A", time.Now())
		later(time.Minute)
		require.EqualValues(t, 1, r.Stats().Done)
		require.Zero(t, r.Stats().Failed)
	})
}

// The ack has overtaken the renewal, which finds nothing to renew.
func TestARenewalThatIsAnsweredAfterTheEndLosesNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, func(context.Context, Task) error { time.Sleep(2500 * time.Millisecond); return nil },
			func(c *Config) { c.Lease, c.HandlerTimeout = 6*time.Second, time.Minute })
		r.store.renewErr = func() error {
			r.store.mu.Unlock()
			time.Sleep(time.Second)
			r.store.mu.Lock()
			return nil
		}
		r.schedule("A", time.Now())
		later(time.Minute)
		require.Len(t, r.store.renewed, 1)
		require.EqualValues(t, 1, r.Stats().Done)
		require.Zero(t, r.Stats().LeaseLost)
	})
}

// Most of the lease was over when the claim was answered.
func TestALeaseOfWhichLittleIsLeftIsLookedAtInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var notes noted[ended]
		r := setup(t, heeds(&notes), func(c *Config) { c.Lease, c.HandlerTimeout = 6*time.Second, time.Minute }, requireClaim)
		r.store.answerIn = []time.Duration{5900 * time.Millisecond}
		r.store.renewErr = func() error { return errors.New("down") }
		time.Sleep(200 * time.Millisecond) // looks come at whole seconds
		r.schedule("A", time.Now())
		later(10 * time.Second)
		got := notes.all()
		require.Len(t, got, 1)
		require.ErrorIs(t, got[0].cause, ErrLeaseLost)
		require.LessOrEqual(t, got[0].after, 6200*time.Millisecond)
	})
}

// Case 110: a handler that never returns. Its ctx ends, its lease is not renewed any
// more, so the task runs elsewhere, or here; its worker is replaced.
func TestAHandlerThatIgnoresItsCtxKeepsNeitherTaskNorWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		leave := make(chan struct{})
		var runs noted[time.Duration]
		r := setup(t, func(_ context.Context, task Task) error {
			if task.ID == "A" && runs.add(time.Since(start)) == 1 {
				<-leave
			}
			return nil
		}, func(c *Config) { c.Workers, c.Lease, c.HandlerTimeout = 1, 6*time.Second, 10*time.Second })
		r.schedule("A", start)
		later(time.Second)
		r.schedule("B", time.Now())
		later(9 * time.Second) // its ctx has ended
		require.Empty(t, r.store.reap(), "its lease lasts a little longer than its ctx")
		require.Zero(t, r.Stats().Done)
		later(6 * time.Second)
		require.EqualValues(t, 1, r.Stats().Done, "B, by the one that came in its stead")
		require.Equal(t, 1, r.Stats().Stuck)
		renewed := len(r.store.renewed)

		due := r.store.reap()
		require.Len(t, due, 1)
		require.Len(t, r.Offer(due, FromRecovery), 1, "it is not held any more")
		later(time.Second)
		require.Len(t, runs.all(), 2)
		require.EqualValues(t, 2, r.Stats().Done)
		require.Equal(t, renewed, len(r.store.renewed))
		require.Empty(t, r.Problems(), "it can be lived with")

		close(leave)
		later(time.Second)
		require.EqualValues(t, 1, r.Stats().LeaseLost, "its late end is refused")
		require.Zero(t, r.Stats().Stuck)
		require.Zero(t, r.Stats().Running)
		require.EqualValues(t, 2, r.Stats().Done)
	})
}

func TestAtMostWorkersAreReplacedAndThenThatIsAProblem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leave := make(chan struct{})
		var atWork, most atomic.Int64
		r := setup(t, func(_ context.Context, task Task) error {
			most.Store(max(most.Load(), atWork.Add(1)))
			defer atWork.Add(-1)
			if task.ID != "good" {
				<-leave
			}
			return nil
		}, func(c *Config) { c.Workers, c.Lease, c.HandlerTimeout = 2, 6*time.Second, 6*time.Second })
		for i := range 10 {
			r.schedule(fmt.Sprint(i), time.Now())
		}
		later(time.Minute)
		require.EqualValues(t, 4, most.Load(), "two, and two in their stead")
		require.Equal(t, 4, r.Stats().Stuck)
		require.Len(t, r.Problems(), 1)
		require.Contains(t, r.Problems()[0], "2 of 2 workers")
		r.schedule("good", time.Now())
		later(time.Minute)
		require.Zero(t, r.Stats().Done)

		close(leave)
		later(time.Minute)
		require.Empty(t, r.Problems())
		require.EqualValues(t, 11, r.Stats().Done, "nobody reaped them, so the late ends count")
	})
}

// When one that was replaced returns, one that was not is.
func TestAReplacementThatIsFreeAgainGoesToTheNextThatIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leave := []chan struct{}{make(chan struct{}), make(chan struct{})}
		var started atomic.Int64
		r := setup(t, func(_ context.Context, task Task) error {
			if task.ID == "good" {
				return nil
			}
			<-leave[started.Add(1)-1]
			return nil
		}, func(c *Config) { c.Workers, c.Lease, c.HandlerTimeout = 1, 6*time.Second, 6*time.Second })
		r.schedule("1", time.Now())
		r.schedule("2", time.Now())
		later(time.Minute)
		require.Equal(t, 2, r.Stats().Stuck)
		r.schedule("good", time.Now())
		later(time.Minute)
		require.Zero(t, r.Stats().Done)
		close(leave[0])
		later(10 * time.Millisecond)
		require.EqualValues(t, 2, r.Stats().Done)
		require.Empty(t, r.Problems())
		close(leave[1])
	})
}

// What a renewal was refused for is nobody's to hand back.
func TestStopHandsBackNothingThatIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leave := make(chan struct{})
		r := setup(t, func(context.Context, Task) error { <-leave; return nil },
			func(c *Config) { c.Lease, c.HandlerTimeout = 6*time.Second, time.Minute })
		r.schedule("A", time.Now())
		later(time.Second)
		r.store.mu.Lock()
		r.store.running["A"].token = "another's"
		r.store.mu.Unlock()
		later(2 * time.Second)
		require.EqualValues(t, 1, r.Stats().LeaseLost)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorContains(t, r.Stop(ctx), "1 handlers are still running")
		require.EqualValues(t, 1, r.Stats().LeaseLost)
		close(leave)
	})
}

func TestStopWaitsForAHandlerThatIsStuckAndHandsItsTaskBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leave := make(chan struct{})
		r := setup(t, func(context.Context, Task) error { <-leave; return nil },
			func(c *Config) { c.Workers, c.Lease, c.HandlerTimeout = 1, 6*time.Second, 6*time.Second })
		r.schedule("A", time.Now())
		later(time.Minute)
		require.Equal(t, 1, r.Stats().Stuck)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := r.Stop(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "1 handlers are still running")
		due, running := r.store.left()
		require.Equal(t, 1, due, "nobody had reaped it")
		require.Zero(t, running)
		require.True(t, r.store.lost["A"])
		close(leave)
		require.NoError(t, r.Stop(t.Context()))
	})
}

// While Stop waits for a handler, its lease goes on being renewed.
func TestALeaseIsRenewedWhileStopWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, func(context.Context, Task) error { time.Sleep(20 * time.Second); return nil },
			func(c *Config) { c.Lease, c.HandlerTimeout = 6*time.Second, time.Minute })
		r.schedule("A", time.Now())
		later(time.Second)
		require.NoError(t, r.Stop(t.Context()))
		require.EqualValues(t, 1, r.Stats().Done)
		require.GreaterOrEqual(t, len(r.store.renewed), 6)
	})
}

func TestAShardThatIsAwayHoldsUpNoRenewalOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cut noted[string]
		r, half := onHalf(t, func(ctx context.Context, task Task) error {
			select {
			case <-time.After(50 * time.Second):
			case <-ctx.Done():
				cut.add(task.ID)
			}
			return nil
		}, func(c *Config) { c.HandlerTimeout = time.Minute })
		r.schedule("far", time.Now())
		r.schedule("near", time.Now())
		later(time.Second)
		half.away.Store(true)
		later(time.Minute)
		require.Equal(t, []string{"far"}, cut.all())
		half.away.Store(false)
		later(time.Minute)
		require.EqualValues(t, 2, r.Stats().Done)
	})
}

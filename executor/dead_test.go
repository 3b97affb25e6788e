package executor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/persist"
)

// Case 119, and the rule of the articles: four attempts, thirty seconds apart, then the alarm.
func TestATaskIsBuriedAfterItsLastAttempt(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error":  func() error { return errors.New("no stock row") },
		"panic":  func() error { panic("no stock row") },
		"goexit": func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				var at []time.Duration
				var dead []Dead
				r := setup(t, func(context.Context, Task) error { at = append(at, time.Since(start)); return fail() },
					func(c *Config) {
						c.Backoff = Backoff{Base: 30 * time.Second, Cap: 30 * time.Second, Attempts: 4}
						c.OnDead = func(_ context.Context, d Dead) { dead = append(dead, d) }
					})
				r.schedule("A", start)
				later(time.Hour)
				require.Equal(t, []time.Duration{0, 30 * time.Second, 60 * time.Second, 90 * time.Second}, at)
				require.Len(t, dead, 1)
				require.Equal(t, "A", dead[0].ID)
				require.Equal(t, 4, dead[0].Attempt)
				require.Equal(t, start.UnixMilli(), dead[0].Due.UnixMilli())
				require.Equal(t, dead[0].Reason, r.store.dead["A"])
				require.Equal(t, dead[0].Err.Error(), dead[0].Reason)
				due, running := r.store.left()
				require.Zero(t, due+running)
				s := r.Stats()
				require.EqualValues(t, 4, s.Failed)
				require.EqualValues(t, 3, s.Retried)
				require.EqualValues(t, 1, s.Dead)
			})
		})
	}
}

func TestAPermanentErrorBuriesAtOnce(t *testing.T) {
	cause := errors.New("no such order")
	for name, err := range map[string]error{
		"plain":        Permanent(cause),
		"wrapped":      fmt.Errorf("close: %w", Permanent(cause)),
		"joined":       errors.Join(errors.New("other"), Permanent(cause)),
		"over RetryAt": errors.Join(RetryAt(time.Now().Add(time.Hour)), Permanent(cause)),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				runs := 0
				r := setup(t, func(context.Context, Task) error { runs++; return err }) // without any limit of attempts
				r.schedule("A", time.Now())
				later(time.Hour)
				require.Equal(t, 1, runs)
				require.Equal(t, err.Error(), r.store.dead["A"])
				require.EqualValues(t, 1, r.Stats().Dead)
				require.ErrorIs(t, err, cause)
			})
		})
	}
	require.NoError(t, Permanent(nil))
}

func TestWithoutALimitATaskIsTriedForEver(t *testing.T) {
	for _, attempts := range []int{0, -1} {
		synctest.Test(t, func(t *testing.T) {
			runs := 0
			r := setup(t, func(context.Context, Task) error { runs++; return errors.New("no") },
				func(c *Config) { c.Backoff.Attempts = attempts })
			r.schedule("A", time.Now())
			later(24 * time.Hour)
			require.Greater(t, runs, 1000)
			require.Empty(t, r.store.dead)
		})
	}
}

// What was put off has not failed, so it uses up nothing.
func TestARetryAtUsesUpNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		r := setup(t, func(_ context.Context, task Task) error {
			if runs++; runs <= 10 {
				return RetryAt(task.Now.Add(time.Minute))
			}
			return nil
		}, func(c *Config) { c.Backoff.Attempts = 1 })
		r.schedule("A", time.Now())
		later(time.Hour)
		require.Equal(t, 11, runs)
		require.Empty(t, r.store.dead)
		require.EqualValues(t, 1, r.Stats().Done)
	})
}

// A task that kills its process in every run never comes to fail here.
func TestATaskWhoseAttemptsAreUsedUpIsBuriedByTheClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dead []Dead
		r := setup(t, func(context.Context, Task) error { t.Error("ran"); return nil }, func(c *Config) {
			c.Backoff.Attempts = 4
			c.OnDead = func(_ context.Context, d Dead) { dead = append(dead, d) }
		})
		r.schedule("A", time.Now().Add(time.Second))
		r.store.mu.Lock()
		r.store.attempt["A"] = 4
		r.store.mu.Unlock()
		later(time.Hour)
		require.Equal(t, []Dead{{ID: "A", Attempt: 4, Reason: "the last of 4 attempts did not say what came of it"}}, dead)
		require.EqualValues(t, 1, r.Stats().Dead)
		require.Contains(t, r.store.dead, "A")
		require.Empty(t, r.mu.held)
	})
}

// A burial that the store refuses, because the lease was over, alarms nobody.
func TestARefusedBurialIsNoDeath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *rig
		r = setup(t, func(context.Context, Task) error {
			r.store.mu.Lock()
			r.store.running["A"].token = "another's"
			r.store.mu.Unlock()
			return Permanent(errors.New("no"))
		}, func(c *Config) { c.OnDead = func(context.Context, Dead) { t.Error("told") } })
		r.schedule("A", time.Now())
		later(time.Minute)
		require.Zero(t, r.Stats().Dead)
		require.EqualValues(t, 1, r.Stats().LeaseLost)
		require.Empty(t, r.store.dead)
	})
}

func TestABurialIsRepeatedUntilAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := 0
		r := setup(t, func(context.Context, Task) error { return Permanent(errors.New("no")) },
			func(c *Config) { c.OnDead = func(context.Context, Dead) { told++ } })
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
		require.Equal(t, 1, told)
		require.Equal(t, map[string]string{"A": "no"}, r.store.dead)
	})
}

// OnDead is the user's code: whatever it does, tasks go on.
func TestAnOnDeadThatPanicsBlocksOrEndsItsGoroutineHoldsUpNoTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told noted[string]
		var cut error
		r := setup(t, func(_ context.Context, task Task) error {
			if strings.HasPrefix(task.ID, "good") {
				return nil
			}
			return Permanent(errors.New("no"))
		}, func(c *Config) {
			c.OnDead = func(ctx context.Context, d Dead) {
				told.add(d.ID)
				switch d.ID {
				case "1":
					panic("alarm")
				case "2":
					runtime.Goexit()
				case "3":
					<-ctx.Done()
					cut = ctx.Err()
				}
			}
		})
		for i := range 5 {
			r.schedule(fmt.Sprint(i), time.Now().Add(time.Duration(i)*time.Second))
			r.schedule(fmt.Sprint("good", i), time.Now().Add(time.Duration(i)*time.Second))
		}
		later(10 * time.Second)
		require.EqualValues(t, 5, r.Stats().Done)
		require.EqualValues(t, 5, r.Stats().Dead)
		require.Equal(t, []string{"0", "1", "2", "3"}, told.all())
		later(time.Minute)
		require.Equal(t, []string{"0", "1", "2", "3", "4"}, told.all())
		require.ErrorIs(t, cut, context.DeadlineExceeded, "after HandlerTimeout")
	})
}

func TestAlarmsThatWaitAreBoundedAndStopWaitsForThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leave := make(chan struct{})
		var told atomic.Int64
		r := setup(t, func(context.Context, Task) error { return Permanent(errors.New("no")) },
			func(c *Config) {
				c.OnDead = func(context.Context, Dead) { told.Add(1); <-leave }
			})
		for i := range 2 * maxAlarms {
			r.schedule(fmt.Sprint(i), time.Now())
		}
		later(time.Second)
		require.EqualValues(t, 2*maxAlarms, r.Stats().Dead)
		require.Len(t, r.Problems(), 1)
		require.Contains(t, r.Problems()[0], "OnDead")

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, r.Stop(ctx), context.DeadlineExceeded)
		require.EqualValues(t, 1, told.Load())
		close(leave)
		require.NoError(t, r.Stop(t.Context()), "a later Stop waits for it")
		require.EqualValues(t, 1, told.Load(), "what Stop did not wait for is not told")
	})
}

func TestStopLetsOnDeadBeToldOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told atomic.Int64
		r := setup(t, func(context.Context, Task) error { return Permanent(errors.New("no")) },
			func(c *Config) { c.OnDead = func(context.Context, Dead) { time.Sleep(time.Second); told.Add(1) } })
		for i := range 5 {
			r.schedule(fmt.Sprint(i), time.Now())
		}
		later(time.Millisecond)
		require.NoError(t, r.Stop(t.Context()))
		require.EqualValues(t, 5, told.Load())
	})
}

func TestAStopWithoutTimeSucceedsWhereOnDeadHasNothingToSay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, func(context.Context, Task) error { return nil }, func(c *Config) {
			c.OnDead = func(context.Context, Dead) { t.Error("told") }
		})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, r.Stop(ctx))
	})
}

func TestAReasonIsBoundedAndValidWhateverTheError(t *testing.T) {
	t.Parallel()
	var odd *nilError
	for name, err := range map[string]error{
		"long":        errors.New(strings.Repeat("x", 1<<20)),
		"long runes":  errors.New("x" + strings.Repeat("é", 1<<20)),
		"long bad":    errors.New(strings.Repeat("\xff", 1<<20)),
		"long mixed":  errors.New(strings.Repeat("\xffé", 1<<20)),
		"bad":         errors.New("order \xc3\x28"),
		"empty":       errors.New(""),
		"panics":      odd,
		"panic error": &PanicError{Value: odd},
	} {
		reason := reasonOf(err)
		require.NotEmpty(t, reason, name)
		require.LessOrEqual(t, len(reason), persist.MaxReasonLen, name)
		require.True(t, utf8.ValidString(reason), name)
	}
	require.Equal(t, "x"+strings.Repeat("é", 511), reasonOf(errors.New("x"+strings.Repeat("é", 600))))
	require.Equal(t, strings.Repeat("é", 512), reasonOf(errors.New(strings.Repeat("é", 600))))
}

func TestNoJitterMakesAWaitNegative(t *testing.T) {
	t.Parallel()
	for _, jitter := range []float64{1, 5, math.Inf(1)} {
		b := Backoff{Base: time.Second, Cap: time.Minute, Jitter: jitter}
		for range 100 {
			require.GreaterOrEqual(t, b.After(3), time.Duration(0))
		}
	}
}

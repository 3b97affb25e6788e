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

// inBatches makes the handler of a rig a BatchHandler, which notes how many tasks each
// call has, with a claim and without.
func inBatches(size int, claimed, unclaimed *noted[int]) func(*Config) {
	return func(c *Config) {
		one := c.Handler
		c.Handler, c.BatchSize = nil, size
		c.BatchHandler = func(ctx context.Context, tasks []Task) []error {
			if tasks[0].Unclaimed {
				unclaimed.add(len(tasks))
			} else {
				claimed.add(len(tasks))
			}
			errs := make([]error, len(tasks))
			for i, t := range tasks {
				errs[i] = one(ctx, t)
			}
			return errs
		}
	}
}

func TestABatchHandlerRunsOneTaskACallWithoutAClaimAndBatchesAfterwards(t *testing.T) {
	bothOutages(t, func(t *testing.T, executes bool) {
		var claimed, unclaimed noted[int]
		r := setupAway(t, func(oneCall) error { time.Sleep(10 * time.Millisecond); return nil },
			func(c *Config) { c.Workers = 3 }, inBatches(10, &claimed, &unclaimed))
		r.far.leave(executes)
		for i := range 100 {
			r.schedule(fmt.Sprint(i), r.start)
		}
		later(10 * time.Second)
		require.Len(t, unclaimed.all(), 100)
		require.Empty(t, claimed.all())
		require.Equal(t, 3, r.atOnce())
		r.far.comeBack()
		later(time.Minute)
		require.Len(t, r.all(), 200)
		require.LessOrEqual(t, len(claimed.all()), 20)
		require.EqualValues(t, 100, r.Stats().Done)
		require.LessOrEqual(t, r.atOnce(), 3)
		require.Zero(t, r.Stats().Running)
		require.Zero(t, r.mu.spare)
		require.Empty(t, r.mu.held)
	})
}

// The claims of two shards come at once, each for fewer tasks than a call has.
func TestBatchesOfSeveralShardsHaveNoMoreThanWorkersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int64
		r, _ := onHalf(t, nil, func(c *Config) {
			c.Workers, c.BatchSize = 2, 10
			c.BatchHandler = func(_ context.Context, tasks []Task) []error {
				most.Store(max(most.Load(), now.Add(1)))
				defer now.Add(-1)
				time.Sleep(time.Second)
				return make([]error, len(tasks))
			}
		})
		for i := range 60 {
			r.schedule(fmt.Sprint("far", i), time.Now().Add(time.Duration(i)*70*time.Millisecond))
			r.schedule(fmt.Sprint("near", i), time.Now().Add(time.Duration(i)*70*time.Millisecond))
		}
		later(time.Minute)
		require.EqualValues(t, 120, r.Stats().Done)
		require.EqualValues(t, 2, most.Load())
		require.Zero(t, r.Stats().Running)
		require.Zero(t, r.mu.spare)
	})
}

// What cannot be told to the store is no burial, and no alarm.
func TestNothingIsBuriedWithoutAClaim(t *testing.T) {
	for name, c := range map[string]struct {
		err       error
		unclaimed int
	}{
		"Permanent":                        {Permanent(errors.New("never")), 1},
		"the last attempt":                 {errors.New("no"), 3},
		"an error that ends the goroutine": {endsItsGoroutine{}, 61}, // retried, whatever its attempt
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var dead noted[Dead]
				r := setupAway(t, func(one oneCall) error {
					if one.unclaimed {
						return c.err
					}
					return nil
				}, func(cfg *Config) {
					cfg.Backoff = Backoff{Base: time.Second, Cap: time.Second, Attempts: 3}
					cfg.OnDead = func(_ context.Context, d Dead) { dead.add(d) }
				})
				r.far.leave(false)
				r.schedule("A", r.start)
				later(time.Minute + 500*time.Millisecond)
				require.Len(t, r.of("A", true), c.unclaimed)
				r.far.comeBack()
				later(time.Minute)
				require.Len(t, r.of("A", false), 1)
				require.EqualValues(t, 1, r.Stats().Done)
				require.Zero(t, r.Stats().Dead)
				require.Empty(t, dead.all())
				require.Empty(t, r.store.dead)
			})
		})
	}
}

// Stop gives up while the claim has no answer and its task runs without it.
func TestStopHandsBackAClaimWithoutAnAnswerBesideARunWithoutIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leave := make(chan struct{})
		r := setupAway(t, func(oneCall) error { <-leave; return nil })
		r.store.claimLost = true
		r.schedule("A", r.start)
		later(time.Second)
		require.Len(t, r.of("A", true), 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorContains(t, r.Stop(ctx), "1 handlers are still running")
		due, running := r.store.left()
		require.Equal(t, 1, due)
		require.Zero(t, running)
		require.Zero(t, r.store.attempt["A"], "uncounted")
		require.False(t, r.store.lost["A"])
		close(leave)
		later(time.Second)
		require.NoError(t, r.Stop(t.Context()))
		require.Empty(t, r.mu.held)
	})
}

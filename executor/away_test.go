package executor

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/wheel"
)

// bothOutages runs a test with a store that does not execute what it does not answer,
// and with one that does.
func bothOutages(t *testing.T, test func(t *testing.T, executes bool)) {
	for _, executes := range []bool{false, true} {
		t.Run(fmt.Sprintf("executes=%v", executes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, executes) })
		})
	}
}

func TestWhatComesDueWhileTheStoreIsAwayRunsWithoutAClaimAndOnceMoreUnderOne(t *testing.T) {
	bothOutages(t, func(t *testing.T, executes bool) {
		r := setupAway(t, nil)
		r.far.leave(executes)
		const n = 50
		for i := range n {
			r.schedule(fmt.Sprint(i), r.start.Add(time.Second+time.Duration(i)*10*time.Millisecond))
		}
		later(10 * time.Minute)
		for i := range n {
			lone := r.of(fmt.Sprint(i), true)
			require.Len(t, lone, 1, "one that succeeded is not repeated")
			due := time.Second + time.Duration(i)*10*time.Millisecond
			require.GreaterOrEqual(t, lone[0].at, due)
			require.LessOrEqual(t, lone[0].at, due+awayAfter)
			require.Equal(t, 1, lone[0].attempt)
			require.Empty(t, r.of(fmt.Sprint(i), false))
		}
		require.Zero(t, r.Ready(), "the sweep need not pause for what waits")
		require.Equal(t, n, r.Stats().Awaiting)
		r.far.comeBack()
		later(time.Minute)
		for i := range n {
			require.Len(t, r.of(fmt.Sprint(i), false), 1)
		}
		due, running := r.store.left()
		require.Zero(t, due+running)
		s := r.Stats()
		require.EqualValues(t, n, s.Done)
		require.EqualValues(t, n, s.Unclaimed)
		require.Zero(t, s.Awaiting+lateOver(s, time.Second)+int(s.LeaseLost))
		require.Equal(t, n, lateOver(s, 0), "once each, as late as the first run was")
		require.Empty(t, r.mu.held)
	})
}

func TestWithRequireClaimNothingRunsWhileTheStoreIsAway(t *testing.T) {
	bothOutages(t, func(t *testing.T, executes bool) {
		r := setupAway(t, nil, requireClaim)
		r.far.leave(executes)
		for i := range 20_000 {
			r.schedule(fmt.Sprint(i), r.start)
		}
		later(20 * time.Second)
		require.Empty(t, r.all())
		require.Equal(t, 20_000, r.Stats().Awaiting+r.Stats().Ready)
		require.Contains(t, r.Problems()[0], "none of them runs without a claim")
		r.far.comeBack()
		later(time.Minute)
		require.EqualValues(t, 20_000, r.Stats().Done)
		require.Zero(t, r.Stats().Unclaimed)
		require.Empty(t, r.Problems())
	})
}

func TestNothingRunsWithoutAClaimBeforeTheLowerBoundHasReachedItsDueTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setupAway(t, nil, func(c *Config) {
			c.LowerMS = func() int64 { return time.Now().Add(-3 * time.Second).UnixMilli() }
		})
		r.far.leave(false)
		r.schedule("first", r.start)
		r.schedule("second", r.start.Add(10*time.Second))
		later(time.Minute)
		require.GreaterOrEqual(t, r.of("first", true)[0].at, 3*time.Second)
		require.GreaterOrEqual(t, r.of("second", true)[0].at, 13*time.Second)
		require.LessOrEqual(t, r.of("second", true)[0].at, 13*time.Second+20*time.Millisecond)
		r.far.comeBack()
		later(time.Minute)
	})
}

// The store comes back and goes again while handlers with and without claims are at
// work.
func TestAtMostWorkersRunAtOnceAlsoAroundAnOutage(t *testing.T) {
	bothOutages(t, func(t *testing.T, executes bool) {
		r := setupAway(t, func(oneCall) error { time.Sleep(700 * time.Millisecond); return nil }, func(c *Config) { c.Workers = 3 })
		for i := range 60 {
			r.schedule(fmt.Sprint(i), r.start.Add(time.Duration(i)*200*time.Millisecond))
		}
		for range 4 {
			later(900 * time.Millisecond)
			r.far.leave(executes)
			later(1100 * time.Millisecond)
			r.far.comeBack()
		}
		later(time.Hour)
		require.Equal(t, 3, r.atOnce())
		require.EqualValues(t, 60, r.Stats().Done)
		require.Zero(t, r.Stats().Running)
		require.Empty(t, r.mu.held)
	})
}

// The answer to the claim comes while the run without it is at work.
func TestAClaimThatIsAnsweredBesideARunWithoutItWaitsForItsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(r awayRig) // what happened in the store
		claimed   int             // runs under a claim afterwards
	}{
		"claimed": {func(awayRig) {}, 1},
		"gone":    {func(r awayRig) { r.store.cancel("A") }, 0},
		"busy": {func(r awayRig) {
			_, _ = r.store.Claim(t.Context(), "another's", []string{"A"}, time.Hour, 0)
		}, 0},
		"not yet": {func(r awayRig) { r.store.schedule("A", r.start.Add(30*time.Second).UnixMilli()) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := setupAway(t, func(one oneCall) error {
					if one.unclaimed {
						time.Sleep(10 * time.Second)
					}
					return nil
				})
				r.far.leave(false)
				r.schedule("A", r.start)
				later(time.Second)
				require.Len(t, r.of("A", true), 1)
				c.meanwhile(r)
				r.far.comeBack()
				later(5 * time.Second)
				require.Len(t, r.all(), 1)
				later(time.Minute)
				require.Len(t, r.of("A", false), c.claimed)
				require.Empty(t, r.mu.held)
				require.Zero(t, r.Stats().Running)
			})
		})
	}
}

// Another instance moved it, and it is due again before the run here has ended.
func TestAnIdThatIsDueAgainBesideARunWithoutAClaimRunsAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setupAway(t, func(one oneCall) error {
			if one.unclaimed {
				time.Sleep(time.Minute)
			}
			return nil
		}, func(c *Config) { c.HandlerTimeout = time.Hour })
		r.far.leave(false)
		r.schedule("A", r.start)
		later(time.Second)
		r.store.schedule("A", r.start.Add(10*time.Second).UnixMilli())
		r.far.comeBack()
		later(time.Hour)
		require.Len(t, r.of("A", false), 1)
		require.Equal(t, time.Minute+awayAfter, r.of("A", false)[0].at)
	})
}

func TestARunWithoutAClaimThatFailsComesAgainAfterItsBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setupAway(t, func(one oneCall) error {
			if one.unclaimed && one.attempt < 4 {
				if one.attempt == 2 {
					panic("no")
				}
				return errors.New("no")
			}
			return nil
		})
		r.far.leave(false)
		r.schedule("A", r.start)
		later(time.Hour)
		lone := r.of("A", true)
		require.Len(t, lone, 4)
		for i, at := range []time.Duration{0, 1 * time.Second, 3 * time.Second, 7 * time.Second} {
			require.Equal(t, i+1, lone[i].attempt)
			require.InDelta(t, awayAfter+at, lone[i].at, float64(100*time.Millisecond))
		}
		require.EqualValues(t, 3, r.Stats().Failed)
		r.far.comeBack()
		later(time.Minute)
		require.Equal(t, 1, r.of("A", false)[0].attempt, "the store counts claims alone")
	})
}

func TestARunWithoutAClaimThatSaysNotYetComesAgainAtItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		r := setupAway(t, func(one oneCall) error {
			if one.at < 30*time.Second {
				return RetryAt(start.Add(30 * time.Second))
			}
			return nil
		})
		r.far.leave(false)
		r.schedule("A", r.start)
		later(time.Hour)
		require.Len(t, r.of("A", true), 2)
		require.InDelta(t, 30*time.Second, r.of("A", true)[1].at, float64(100*time.Millisecond))
		r.far.comeBack()
		later(time.Minute)
		require.EqualValues(t, 1, r.Stats().Done)
	})
}

// It is due in the store, so there it is asked again.
func TestWhatWaitsToRunAgainWithoutAClaimIsClaimedWhenTheStoreIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setupAway(t, func(one oneCall) error {
			if one.unclaimed {
				return RetryAt(time.Now().Add(10 * time.Hour))
			}
			return nil
		})
		r.far.leave(false)
		for i := range 10 {
			r.schedule(fmt.Sprint(i), r.start)
		}
		later(time.Minute)
		r.far.comeBack()
		later(time.Minute)
		require.EqualValues(t, 10, r.Stats().Done)
		require.Zero(t, r.mu.waits.len())
		require.Empty(t, r.mu.held)
	})
}

// Handlers are faster than acks, and the acks stop: no claim is made that could show
// that the store is away.
func TestAcksThatPileUpDoNotKeepTheRestFromRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setupAway(t, nil)
		acks := 0
		r.store.mu.Lock()
		r.store.settleErr = func() error { // the first batch hangs, all that is claimed waits
			if acks++; acks == 1 {
				r.store.mu.Unlock()
				time.Sleep(100 * time.Millisecond)
				r.far.leave(false)
				time.Sleep(time.Minute)
				r.store.mu.Lock()
			}
			return nil
		}
		r.store.mu.Unlock()
		for i := range 1000 {
			r.schedule(fmt.Sprint(i), r.start.Add(time.Second))
		}
		later(10 * time.Second)
		r.mu.Lock()
		unsettled := r.mu.unsettled
		r.mu.Unlock()
		require.LessOrEqual(t, unsettled, r.cfg.Workers*(unsettledPerWorker+1))
		ran := map[string]bool{}
		for _, one := range r.all() {
			ran[one.id] = true
		}
		require.Len(t, ran, 1000)
		r.far.comeBack()
		later(10 * time.Minute)
		require.EqualValues(t, 1000, r.Stats().Done)
	})
}

func TestProblemsSayThatTheStoreIsAwayAndHowManyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setupAway(t, nil)
		require.Empty(t, r.Problems())
		r.far.leave(false)
		for i := range 10 {
			r.schedule(fmt.Sprint(i), r.start)
		}
		later(3250 * time.Millisecond)
		require.Len(t, r.Problems(), 1)
		require.Contains(t, r.Problems()[0], "the store has answered no claim since")
		require.Contains(t, r.Problems()[0], "10 due ids wait")
		require.Contains(t, r.Problems()[0], "10 runs without a claim")
		r.far.comeBack()
		later(time.Second)
		require.Empty(t, r.Problems())
	})
}

func TestStopInAnOutageEndsInTimeAndLosesNothing(t *testing.T) {
	bothOutages(t, func(t *testing.T, executes bool) {
		r := setupAway(t, func(one oneCall) error { time.Sleep(time.Second); return nil }, func(c *Config) { c.Workers = 2 })
		r.far.leave(executes)
		for i := range 10 {
			r.schedule(fmt.Sprint(i), r.start)
		}
		later(500 * time.Millisecond)
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_ = r.Stop(ctx)
		require.LessOrEqual(t, time.Since(begun), 5*time.Second+lastWord)
		require.Len(t, r.all(), 2, "none begins after Stop")
		require.Equal(t, 2, r.atOnce())
		due, running := r.store.left()
		require.Equal(t, 10, due+running)
		r.far.comeBack()
		require.NoError(t, r.Stop(t.Context()))
	})
}

// Its claim is answered while Stop waits for the run without one.
func TestWhatIsClaimedInTheMiddleOfStopGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setupAway(t, func(one oneCall) error { time.Sleep(20 * time.Second); return nil })
		r.far.leave(false)
		for i := range 10 {
			r.schedule(fmt.Sprint(i), r.start)
		}
		later(time.Second)
		go func() {
			time.Sleep(time.Second)
			r.far.comeBack()
		}()
		require.NoError(t, r.Stop(t.Context()))
		require.Len(t, r.all(), 4)
		due, running := r.store.left()
		require.Equal(t, 10, due)
		require.Zero(t, running)
		require.Empty(t, r.mu.held)
	})
}

// There is nothing else to wait for.
func TestStopWaitsForAClaimThatHasNoAnswerYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setupAway(t, nil)
		r.far.leave(true)
		r.schedule("A", r.start)
		later(time.Second)
		require.Len(t, r.all(), 1)
		go func() {
			time.Sleep(time.Second)
			r.far.comeBack()
		}()
		require.NoError(t, r.Stop(t.Context()))
		due, running := r.store.left()
		require.Equal(t, 1, due)
		require.Zero(t, running)
	})
}

// All workers have runs without a claim when what the store has granted comes.
func TestStopHandsBackAtOnceWhatIsClaimedAndWaitsForAWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setupAway(t, func(oneCall) error { time.Sleep(10 * time.Second); return nil }, func(c *Config) { c.Workers = 2 })
		r.far.leave(false)
		r.store.schedule("A", r.start.UnixMilli())
		r.cfg.Calls.Begin("A") // it does not run without a claim
		r.Offer([]wheel.Due{{ID: "A", DueMS: r.start.UnixMilli()}}, FromWheel)
		r.schedule("B", r.start.Add(time.Second))
		r.schedule("C", r.start.Add(time.Second))
		later(2 * time.Second)
		require.Len(t, r.all(), 2)
		r.far.comeBack()
		later(time.Second)
		_, running := r.store.left()
		require.Equal(t, 1, running)
		stopped := make(chan error)
		go func() { stopped <- r.Stop(context.Background()) }()
		later(time.Second)
		due, running := r.store.left()
		require.Equal(t, 3, due)
		require.Zero(t, running)
		require.NoError(t, <-stopped)
		require.Len(t, r.all(), 2)
	})
}

func TestARunThatBeganInOneOutageAndEndsInTheNextIsClaimedAfterThat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setupAway(t, func(one oneCall) error {
			if one.id == "A" && one.unclaimed {
				time.Sleep(10 * time.Second)
			}
			return nil
		})
		r.far.leave(false)
		r.schedule("B", r.start)
		r.schedule("A", r.start.Add(time.Second)) // not in the claim that has no answer
		later(2 * time.Second)
		r.far.comeBack()
		later(time.Second)
		r.far.leave(false)
		r.schedule("C", time.Now())
		later(time.Minute)
		require.Equal(t, 2, r.Stats().Awaiting)
		r.far.comeBack()
		later(time.Minute)
		require.EqualValues(t, 3, r.Stats().Done)
		require.Empty(t, r.mu.held)
	})
}

func TestAShardThatIsAwayRunsWithoutClaimsAndOthersUnderThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := names{ran: map[string]int{}}
		r, half := onHalf(t, n.handle, func(c *Config) { c.RequireClaim = false })
		half.away.Store(true)
		for i := range 100 {
			r.schedule(fmt.Sprint("far", i), time.Now())
			r.schedule(fmt.Sprint("near", i), time.Now())
		}
		later(20 * time.Second)
		require.Len(t, n.ran, 200)
		require.EqualValues(t, 100, r.Stats().Done)
		require.EqualValues(t, 100, r.Stats().Unclaimed)
		require.Contains(t, r.Problems()[0], "shard 1 of the store")
		half.away.Store(false)
		later(20 * time.Second)
		require.EqualValues(t, 200, r.Stats().Done)
		require.Equal(t, 2, n.ran["far7"])
		require.Equal(t, 1, n.ran["near7"])
	})
}

// lateOver is how many first attempts were later than d, or as late as the last bucket
// up to d.
func lateOver(s Stats, d time.Duration) (n int) {
	for i, count := range s.Lateness.Counts {
		if i == 0 && d > 0 || i > 0 && s.Lateness.BoundsMS[i-1] < d.Milliseconds() {
			continue
		}
		n += int(count)
	}
	return n
}

// The workers are never idle in a storm of fast handlers, if all of it is claimed ahead.
func TestAStormOfAnotherShardStarvesNoRunWithoutAClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var far noted[string]
		r, half := onHalf(t, func(_ context.Context, task Task) error {
			if task.Unclaimed {
				far.add(task.ID)
			}
			time.Sleep(time.Millisecond)
			return nil
		}, func(c *Config) { c.Workers, c.RequireClaim = 1, false })
		r.storm(100)
		later(time.Second) // the handler is known to be fast
		half.away.Store(true)
		now := time.Now().UnixMilli()
		var list []wheel.Due
		add := func(id string) {
			d := wheel.Due{ID: id, DueMS: now - 100_000 + int64(len(list))}
			r.store.schedule(d.ID, d.DueMS)
			list = append(list, d)
		}
		for i := range 8 {
			add(fmt.Sprint("far ", i))
			add(fmt.Sprint("near ", i))
		}
		for i := range 3000 {
			add(fmt.Sprint("storm ", i))
		}
		r.Offer(list, FromWheel)
		later(time.Second)
		require.Len(t, far.all(), 8)
		require.Positive(t, r.Ready(), "the storm goes on")
		later(15 * time.Second)
		half.away.Store(false)
		later(time.Minute)
	})
}

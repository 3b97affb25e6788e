package executor

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/internal/arming"
	"github.com/orderwheel/orderwheel/wheel"
)

// What the user's calls forbid in an outage.

func TestNoRunWithoutAClaimBeginsWhileAUsersCallIsOpen(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(r awayRig, answer func())
		want int // runs without a claim afterwards
	}{
		"cancelled": {func(r awayRig, answer func()) { require.True(r.t, r.cancel("A", answer)) }, 0},
		"moved on":  {func(r awayRig, answer func()) { r.move("A", r.start.Add(time.Hour), answer) }, 0},
		"moved up":  {func(r awayRig, answer func()) { r.move("A", r.start, answer) }, 1},
		"refused":   {func(r awayRig, answer func()) { r.fail("A", arming.Refused, answer) }, 1},
		"unknown":   {func(r awayRig, answer func()) { r.fail("A", arming.Unknown, answer) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := setupAway(t, nil)
				r.far.leave(false)
				r.schedule("B", r.start)
				r.schedule("A", r.start.Add(2*time.Second))
				later(time.Second)
				c.end(r, func() {
					later(10 * time.Second)
					require.Empty(t, r.of("A", true))
				})
				later(10 * time.Second)
				require.Len(t, r.of("A", true), c.want)
				r.far.comeBack()
				later(2 * time.Hour)
				left, running := r.store.left()
				require.Zero(t, left+running)
				require.False(t, r.cfg.Calls.Blocks("A"), "its claim has told")
			})
		})
	}
}

// The answer comes after the wheel has let go of the id, and before it is held here; where a list
// comes in in parts, that is after the board was asked for the first time.
func TestWhatTheUserSaysWhileAnIdIsHandedOverHolds(t *testing.T) {
	cancel := func(r awayRig) { require.True(r.t, r.cancel("A", now)) }
	move := func(r awayRig) { r.move("A", r.start.Add(time.Hour), now) }
	back := func(r awayRig) { r.move("A", r.start, now) }
	for name, c := range map[string]struct {
		before, meanwhile func(r awayRig)
		want              []time.Duration // when it is due in a run without a claim
	}{
		"cancelled":              {nil, cancel, nil},
		"moved on":               {nil, move, []time.Duration{time.Hour}},
		"cancelled, then back":   {cancel, back, []time.Duration{0}},
		"moved on, then back":    {move, back, []time.Duration{0}},
		"cancelled, then beyond": {cancel, move, []time.Duration{time.Hour}},
	} {
		for _, inParts := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, in parts: %v", name, inParts), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var r awayRig
					var asked atomic.Bool
					r = setupAway(t, nil, func(cfg *Config) {
						cfg.NowMS = func() int64 {
							if asked.CompareAndSwap(true, false) {
								c.meanwhile(r)
							}
							return time.Now().UnixMilli()
						}
					})
					r.far.leave(false)
					r.schedule("B", r.start)
					later(time.Second)
					r.store.schedule("A", r.start.UnixMilli())
					if c.before != nil {
						c.before(r)
					}
					list := due(r.start, "A")
					if inParts {
						defer r.cfg.Board.End(r.cfg.Board.Ask())
						said := r.cfg.Board.Overruled(list, nil)
						c.meanwhile(r)
						r.offerSome(offered{list, said}, FromWheel, false)
					} else {
						asked.Store(true)
						r.Offer(list, FromWheel)
						require.False(t, asked.Load())
					}
					later(2 * time.Hour)
					var dues []time.Duration
					for _, run := range r.of("A", true) {
						dues = append(dues, run.due)
					}
					require.Equal(t, c.want, dues)
					r.far.comeBack()
					later(2 * time.Hour)
					left, running := r.store.left()
					require.Zero(t, left+running)
				})
			})
		}
	}
}

func TestAnIdOfUnknownOutcomeRunsWithoutAClaimOnceALaterCallIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setupAway(t, nil)
		r.far.leave(false)
		r.schedule("A", r.start.Add(time.Second))
		r.fail("A", arming.Unknown, now)
		later(time.Minute)
		require.Empty(t, r.of("A", true))
		r.fail("A", arming.Refused, now)
		later(time.Minute)
		require.Empty(t, r.of("A", true))
		r.move("A", r.start, now)
		later(time.Second)
		require.Len(t, r.of("A", true), 1)
		r.far.comeBack()
		later(time.Minute)
	})
}

// The claim was asked before: its answer says nothing of what came after.
func TestAnUnknownOutcomeOutlivesTheAnswerToAnOlderClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setupAway(t, nil)
		r.store.answerIn = []time.Duration{time.Second}
		r.store.schedule("A", r.start.UnixMilli())
		r.fail("A", arming.Unknown, now) // an older one
		r.Offer([]wheel.Due{{ID: "A", DueMS: r.start.UnixMilli()}}, FromWheel)
		later(500 * time.Millisecond)
		r.fail("A", arming.Unknown, now)
		later(time.Minute)
		require.True(t, r.cfg.Calls.Blocks("A"))
	})
}

func TestWhatTheUserHasMovedDoesNotRunWithoutAClaimBeforeItsNewTime(t *testing.T) {
	for name, c := range map[string]struct{ from, to time.Duration }{
		"later, before it was due":  {5 * time.Second, 20 * time.Second},
		"earlier":                   {time.Hour, 20 * time.Second},
		"later, while it waited":    {time.Second, 20 * time.Second},
		"later, within its backoff": {2500 * time.Millisecond, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := setupAway(t, func(one oneCall) error {
					if one.at < 10*time.Second {
						return errors.New("no")
					}
					return nil
				}, func(cfg *Config) { cfg.Workers = 1 })
				r.far.leave(false)
				r.schedule("B", r.start)
				r.schedule("A", r.start.Add(c.from))
				later(4 * time.Second)
				before := len(r.of("A", true))
				r.move("A", r.start.Add(c.to), now)
				later(15900 * time.Millisecond)
				require.Len(t, r.of("A", true), before)
				later(time.Minute)
				lone := r.of("A", true)
				require.Len(t, lone, before+1)
				require.InDelta(t, c.to, lone[before].at, float64(50*time.Millisecond))
				require.Equal(t, 1, lone[before].attempt, "it starts afresh")
				r.far.comeBack()
				later(2 * time.Hour)
				left, running := r.store.left()
				require.Zero(t, left+running)
			})
		})
	}
}

func TestARunUnderWayWhenAUsersCallIsAnsweredDoesNotComeAgainByItself(t *testing.T) {
	for name, fails := range map[string]error{"fails": errors.New("no"), "not yet": RetryAt(time.Now().AddDate(-50, 0, 0))} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := setupAway(t, func(one oneCall) error {
					time.Sleep(5 * time.Second)
					return fails
				})
				r.far.leave(false)
				r.schedule("cancelled", r.start)
				r.schedule("moved", r.start)
				later(time.Second)
				require.Len(t, r.all(), 2)
				require.False(t, r.cancel("cancelled", now), "it has started")
				r.move("moved", r.start.Add(time.Hour), now)
				later(59 * time.Minute)
				require.Len(t, r.all(), 2)
				later(2 * time.Minute)
				require.Greater(t, len(r.of("moved", true)), 1)
				require.Len(t, r.of("cancelled", true), 1)
				require.False(t, r.cancel("moved", now))
				r.far.comeBack()
				later(time.Hour)
				require.Empty(t, r.of("cancelled", false))
				require.Empty(t, r.mu.held)
			})
		})
	}
}

func TestACancelOfWhatHasRunWithoutAClaimSaysThatItHasStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setupAway(t, nil)
		r.far.leave(false)
		for _, id := range []string{"A", "B"} {
			r.schedule(id, r.start)
		}
		later(time.Second)
		require.False(t, r.cancel("A", now))
		r.move("B", r.start.Add(time.Hour), now)
		require.True(t, r.cancel("B", now), "it was scheduled again since")
		r.far.comeBack()
		later(2 * time.Hour)
		require.Empty(t, r.of("A", false))
		require.Empty(t, r.of("B", false))
	})
}

// The wheel has fired it, or a page was read, before the user's call was answered, and it
// is offered after.
func TestWhatIsOfferedAfterTheUserHasMovedItRunsAtItsNewTime(t *testing.T) {
	for _, source := range []Source{FromWheel, FromSweep} {
		synctest.Test(t, func(t *testing.T) {
			r := setupAway(t, nil)
			r.far.leave(false)
			r.schedule("B", r.start)
			later(time.Second)
			fired := []wheel.Due{{ID: "moved", DueMS: r.start.UnixMilli()}, {ID: "cancelled", DueMS: r.start.UnixMilli()}}
			ticket := r.cfg.Board.Ask() // as the sweep does
			r.move("moved", r.start.Add(20*time.Second), now)
			require.False(t, r.cancel("cancelled", now))
			if source == FromSweep {
				later(2 * time.Second)
			}
			r.Offer(fired, source)
			r.cfg.Board.End(ticket)
			later(time.Minute)
			require.Len(t, r.of("moved", true), 1)
			require.InDelta(t, 20*time.Second, r.of("moved", true)[0].at, float64(50*time.Millisecond))
			require.Empty(t, r.of("cancelled", true))
			r.far.comeBack()
			later(time.Minute)
			require.Empty(t, r.mu.held)
		})
	}
}

// It was fired with more than are taken in at once. The user's call was answered before these
// come in, or while they do; it waits its turn, and Redis goes away.
func TestAUsersCallIsHeededWhileAStormComesIn(t *testing.T) {
	for _, before := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var meanwhile atomic.Pointer[func()]
			r := setupAway(t, nil, func(c *Config) {
				c.NowMS = func() int64 {
					if f := meanwhile.Swap(nil); f != nil {
						(*f)()
					}
					return time.Now().UnixMilli()
				}
			})
			var fired []wheel.Due
			for i := range offerMost {
				fired = append(fired, wheel.Due{ID: fmt.Sprint(i), DueMS: r.start.UnixMilli()})
			}
			fired = append(fired, due(r.start, "moved", "cancelled", "0")...)
			calls := func() {
				r.move("moved", r.start.Add(20*time.Second), now)
				require.False(t, r.cancel("cancelled", now))
			}
			if before {
				calls()
			}
			first := func() {
				if !before {
					calls()
				}
				for _, id := range []string{"C", "D"} { // until the board has forgotten what came before the storm
					time.Sleep(time.Second)
					r.schedule(id, r.start.Add(time.Hour))
				}
				r.far.leave(false)
			}
			meanwhile.Store(&first)
			r.Offer(fired, FromWheel)
			later(time.Minute)
			require.Len(t, r.of("moved", true), 1)
			require.InDelta(t, 20*time.Second, r.of("moved", true)[0].at, float64(50*time.Millisecond))
			require.Empty(t, r.of("cancelled", true))
			require.Len(t, r.of("0", true), 1)
			require.Len(t, r.all(), offerMost+1)
			r.far.comeBack()
			later(2 * time.Hour)
			require.Empty(t, r.mu.held)
		})
	}
}

// It is at work under a claim; the wheel fires it anew, and then the user moves it on.
func TestWhatTheWheelFiredBesideARunIsForgottenWhenTheUserMovesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r awayRig
		r = setupAway(t, func(one oneCall) error {
			if len(r.all()) == 1 {
				time.Sleep(10 * time.Second)
			}
			return nil
		})
		r.schedule("A", r.start)
		later(time.Second)
		r.move("A", r.start.Add(2*time.Second), now)
		later(4 * time.Second)
		r.move("A", r.start.Add(time.Hour), now)
		r.far.leave(false)
		r.schedule("B", time.Now())
		later(30 * time.Minute)
		require.Len(t, r.of("A", false), 1)
		require.Empty(t, r.of("A", true))
		r.far.comeBack()
		later(time.Hour)
	})
}

func TestWithTooManyUnknownOutcomesNothingRunsWithoutAClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setupAway(t, nil)
		r.far.leave(false)
		for i := range 1<<16 + 1 {
			r.fail(fmt.Sprint("x", i), arming.Unknown, now)
		}
		r.schedule("A", r.start)
		later(time.Minute)
		require.Empty(t, r.all())
		require.Len(t, r.Problems(), 2)
		r.far.comeBack()
		later(time.Minute)
		require.Len(t, r.of("A", false), 1)
	})
}

package recovery

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/internal/arming"
	"github.com/orderwheel/orderwheel/persist"
	"github.com/orderwheel/orderwheel/wheel"
)

func horizon(d time.Duration) func(*Config) { return func(c *Config) { c.Horizon = d } }

// dueIn puts n tasks into the store, the i-th due in i times every.
func (r *rig) dueIn(n int, every time.Duration) (beginMS int64) {
	beginMS = time.Now().UnixMilli()
	for i := range n {
		r.store.due = append(r.store.due, persist.Due{ID: fmt.Sprintf("%07d", i), DueMS: beginMS + int64(i)*every.Milliseconds()})
	}
	return beginMS
}

// requireArmed fails unless all of what the store has up to untilMS is armed as it
// stands there, and nothing due after edgeMS is.
func (r *rig) requireArmed(t *testing.T, fromMS, untilMS, edgeMS int64) {
	t.Helper()
	armed := r.armed()
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	for _, d := range r.store.due {
		ms, ok := armed[d.ID]
		if d.DueMS > fromMS && d.DueMS <= untilMS && ms != d.DueMS {
			require.FailNow(t, "not armed, or not for its time", "%v", d)
		}
		if d.DueMS > edgeMS && ok {
			require.FailNow(t, "armed beyond the edge", "%v", d)
		}
	}
}

func TestRebuildReadsNoFurtherThanTheHorizon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, horizon(time.Minute))
		beginMS := r.dueIn(10_000, time.Second)
		require.NoError(t, r.Rebuild(t.Context()))
		require.Len(t, r.wheel.all(), 60) // our clock is a little behind the store's
		r.requireArmed(t, beginMS, beginMS+59_000, beginMS+60_000)
		require.Equal(t, 2, r.store.reads, "what is overdue, and what comes")
		require.EqualValues(t, 60, r.Stats().Rebuilt)
	})
}

func TestWhatComesNearIsArmedLongBeforeItIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, horizon(time.Minute), ticks)
		r.dueIn(3000, 500*time.Millisecond)
		r.Start()
		require.NoError(t, r.Rebuild(t.Context()))
		for range 60 {
			nowMS := time.Now().UnixMilli()
			r.requireArmed(t, nowMS, nowMS+40_000, nowMS+60_000)
			require.Empty(t, r.Problems())
			later(7 * time.Second)
		}
	})
}

// After hours in which nothing was due within the horizon.
func TestALongIdleTimeSkipsNoRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, horizon(time.Minute))
		r.Start()
		require.NoError(t, r.Rebuild(t.Context()))
		later(10 * time.Hour)
		nowMS := time.Now().UnixMilli()
		r.store.put("another's", nowMS+59_000) // behind the edge: its own instance has it
		r.store.put("far", nowMS+300_000)
		later(270 * time.Second)
		require.EqualValues(t, nowMS+300_000, r.wheel.all()["far"])
	})
}

// A server with another clock takes over.
func TestTheEdgeFollowsTheStoresClockAndSkipsNoRange(t *testing.T) {
	for _, jump := range []time.Duration{time.Hour, -time.Hour, 30 * time.Second, -30 * time.Second, 25 * time.Hour} {
		t.Run(jump.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := setup(t, horizon(time.Minute), ticks)
				beginMS := r.dueIn(6000, time.Second)
				var mu sync.Mutex
				var fired []wheel.Due
				r.fired = func(due []wheel.Due) { mu.Lock(); defer mu.Unlock(); fired = append(fired, due...) }
				r.Start()
				require.NoError(t, r.Rebuild(t.Context()))
				later(10 * time.Second)
				r.store.set(func() { r.store.offset = jump })
				later(3 * clockEvery)
				nowMS := time.Now().Add(jump).UnixMilli()
				require.InDelta(t, nowMS, r.cfg.Clock.NowMS(), 2)
				handed := map[string]bool{} // also by a wheel
				mu.Lock()
				for _, d := range slices.Concat(r.get(&r.found), r.get(&r.overdue), fired) {
					handed[d.ID] = true
				}
				mu.Unlock()
				armed := r.armed() // in another wheel, where the clock stepped back
				for _, d := range r.store.due {
					if d.DueMS > beginMS && d.DueMS <= nowMS+40_000 {
						_, ok := armed[d.ID]
						require.True(t, ok || handed[d.ID], "%v is neither armed nor handed over", d)
					}
				}
				later(time.Second)
				require.Empty(t, r.Problems())
			})
		})
	}
}

// Case 42: the range of a reading that failed is read again, though the edge has moved.
func TestAReadingThatFailsIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, horizon(time.Minute), ticks)
		r.dueIn(600, time.Second)
		r.Start()
		require.NoError(t, r.Rebuild(t.Context()))
		r.store.set(func() { r.store.err = errors.New("BUSY") })
		later(40 * time.Second)
		require.Contains(t, r.Problems()[0], "BUSY")
		require.Contains(t, fmt.Sprint(r.Problems()), "not armed yet")
		r.store.set(func() { r.store.err = nil })
		later(3 * time.Second)
		nowMS := time.Now().UnixMilli()
		r.requireArmed(t, nowMS, nowMS+40_000, nowMS+60_000)
		require.Empty(t, r.Problems())
	})
}

// Users schedule, move and cancel at any time while the edge moves and pages are being
// read: then each id is armed as it stands in the store, up to the edge, and no other.
func TestNoIDFallsBetweenTheUsersCallsAndTheReading(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			r := setup(t, horizon(2*time.Second), func(c *Config) { c.SweepEvery = time.Hour })
			r.store.window = func() { // the store's answer is late, and others write meanwhile
				r.store.mu.Unlock()
				time.Sleep(time.Duration(rand.Int64N(int64(30 * time.Millisecond))))
				r.store.mu.Lock()
			}
			r.Start()
			require.NoError(t, r.Rebuild(t.Context()))
			ctx, cancel := context.WithCancel(t.Context())
			for user := range 8 {
				rnd := rand.New(rand.NewPCG(seed, uint64(user)))
				go func() {
					for ctx.Err() == nil {
						r.userCall(rnd, fmt.Sprintf("%d-%d", user, rnd.IntN(5)))
						time.Sleep(time.Duration(rnd.Int64N(int64(20 * time.Millisecond))))
					}
				}()
			}
			time.Sleep(10 * time.Second)
			cancel()
			later(100 * time.Millisecond)
			require.NoError(t, r.cfg.Board.Drain(t.Context()))
			armed, edgeMS, n := r.wheel.all(), r.cfg.Board.Edge(), 0
			for _, d := range r.store.due {
				if d.DueMS > edgeMS {
					require.NotContains(t, armed, d.ID, "seed %d", seed)
					continue
				}
				n++
				require.Equal(t, d.DueMS, armed[d.ID], "seed %d: %v", seed, d)
			}
			require.Len(t, armed, n, "seed %d: armed and not in the store", seed)
		})
	}
}

// userCall is what the engine does: the store first, then the board.
func (r *rig) userCall(rnd *rand.Rand, id string) {
	pause := func() { time.Sleep(time.Duration(rnd.Int64N(int64(10 * time.Millisecond)))) }
	pause()
	r.store.remove(id)
	if rnd.IntN(4) == 0 {
		pause()
		r.cfg.Board.UserCancelled(id)
		return
	}
	dueMS := time.Now().UnixMilli() + rnd.Int64N(6000)
	r.store.put(id, dueMS)
	pause()
	r.cfg.Board.UserScheduled(id, dueMS)
}

// While one page is being armed the next is on its way.
func TestReadingAndArmingOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowWheel{armed: newArmed(), free: make(chan struct{})}
		r := setup(t, func(c *Config) { c.Board = arming.New(slow) })
		release := sync.OnceFunc(func() { close(slow.free) })
		defer release()
		r.dueIn(4*readSize, 100*time.Millisecond)
		done := make(chan error)
		go func() { done <- r.Rebuild(t.Context()) }()
		later(time.Second)
		require.Zero(t, slow.Len())
		require.Greater(t, r.store.readCount(), 2)
		require.LessOrEqual(t, r.cfg.Board.Waiting(), readSize, "no faster than the wheel can take it")
		release()
		require.NoError(t, <-done)
		require.EqualValues(t, 4*readSize, r.Stats().Rebuilt)
	})
}

// slowWheel takes nothing before it is free.
type slowWheel struct {
	*armed
	free chan struct{}
}

func (s *slowWheel) Schedule(id string, dueMS int64) {
	<-s.free
	s.armed.Schedule(id, dueMS)
}

// A million overdue must not fill the memory, nor keep what is due next waiting.
func TestABacklogAtStartIsHandedOverAsWorkersTakeItUpAndTheRestIsArmedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		nowMS := time.Now().UnixMilli()
		const backlog = 20 * pageSize
		for i := range backlog {
			r.store.due = append(r.store.due, persist.Due{ID: fmt.Sprintf("old%06d", i), DueMS: nowMS - 2*backlog + int64(i)})
		}
		r.store.put("soon", nowMS+60_000)
		r.cfg.Ready = func() int { return len(r.get(&r.overdue)) - int(r.ready.Load()) } // ready: so many were taken up
		r.cfg.ReadyLimit = pageSize
		r.Start()
		require.NoError(t, r.Rebuild(t.Context()))
		require.Contains(t, r.wheel.all(), "soon")
		for took := int64(0); took < backlog; took += pageSize / 2 {
			require.LessOrEqual(t, r.cfg.Ready(), 2*pageSize)
			r.ready.Store(took)
			later(5 * time.Millisecond)
		}
		later(2 * time.Second)
		got := r.get(&r.overdue)
		require.Equal(t, backlog, len(got)) // not Len, which shows them all
		for i, d := range got {
			require.Equal(t, fmt.Sprintf("old%06d", i), d.ID, "oldest first")
		}
		require.Empty(t, r.get(&r.found), "they were overdue at Start")
	})
}

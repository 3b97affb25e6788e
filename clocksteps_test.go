package orderwheel

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/executor"
	"github.com/orderwheel/orderwheel/persist"
	"github.com/orderwheel/orderwheel/persist/persisttest"
)

// The whole engine on a store whose clock is not the local one, and is stepped. The
// time is that of a synctest bubble: it stands still while anything is at work, so what is
// late is late by what the engine decided and not by the machine.
//
// The local wall clock needs no test of this kind: nothing reads it, as
// TestNoRoomReadsTheLocalWallClock shows.

// On the way to the store and back a call takes so long.
const wayThere, wayBack = 300 * time.Microsecond, 900 * time.Microsecond

// stepped is a store in memory with a clock of its own.
type stepped struct {
	*persist.Memory

	mu struct {
		sync.Mutex
		steps []step // oldest first
	}
}

// step says: since at, the store's clock shows the local one and offset more.
type step struct {
	at     time.Time
	offset time.Duration
}

func newStepped(offset time.Duration) *stepped {
	s := new(stepped)
	s.Memory = persist.NewMemory(s.nowMS)
	s.step(offset)
	return s
}

func (s *stepped) step(offset time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.steps = append(s.mu.steps, step{time.Now(), offset})
}

func (s *stepped) nowMS() int64 { return s.now().UnixMilli() }

func (s *stepped) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.mu.steps[len(s.mu.steps)-1].offset)
}

// dueFor is how long the store's clock has shown due or later, without a break; below
// zero: it does not.
func (s *stepped) dueFor(due time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var since time.Time
	for i := len(s.mu.steps) - 1; i >= 0; i-- {
		reached := due.Add(-s.mu.steps[i].offset) // when that offset brings the clock there
		if i < len(s.mu.steps)-1 && !reached.Before(s.mu.steps[i+1].at) {
			break // not under this offset: so since the step after it
		}
		since = reached
		if reached.After(s.mu.steps[i].at) {
			break
		}
		since = s.mu.steps[i].at
	}
	if since.IsZero() {
		return -time.Hour
	}
	return time.Since(since)
}

// lastStep is how long ago the clock was stepped when due was reached, dueFor ago.
func (s *stepped) lastStep(dueFor time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	reached := time.Now().Add(-dueFor)
	for i := len(s.mu.steps) - 1; i > 0; i-- {
		if !s.mu.steps[i].at.After(reached) {
			return reached.Sub(s.mu.steps[i].at)
		}
	}
	return 1<<63 - 1 // the first is no step
}

// travel makes a call as from far away.
func travel(do func() (*persist.Sample, error)) error {
	sent := time.Now()
	time.Sleep(wayThere)
	clock, err := do()
	time.Sleep(wayBack)
	clock.Sent, clock.Received = sent, time.Now()
	return err
}

func (s *stepped) Claim(ctx context.Context, token string, ids []string, lease time.Duration, most int) (c persist.Claims, err error) {
	err = travel(func() (*persist.Sample, error) {
		c, err = s.Memory.Claim(ctx, token, ids, lease, most)
		return &c.Clock, err
	})
	c.Sent = c.Clock.Sent
	return c, err
}

func (s *stepped) Window(ctx context.Context, after persist.Cursor, untilMS int64, limit int) (p persist.Page, err error) {
	err = travel(func() (*persist.Sample, error) {
		p, err = s.Memory.Window(ctx, after, untilMS, limit)
		return &p.Clock, err
	})
	return p, err
}

func (s *stepped) Now(ctx context.Context) (now persist.Sample, err error) {
	err = travel(func() (*persist.Sample, error) {
		now, err = s.Memory.Now(ctx)
		return &now, err
	})
	return now, err
}

func (s *stepped) Shards() int                 { return 1 }
func (s *stepped) ShardOf(string) int          { return 0 }
func (s *stepped) Problems() []string          { return nil }
func (s *stepped) Close(context.Context) error { return nil }

// newOn makes an engine on another store.
func newOn(t *testing.T, s store, h executor.Handler) *Engine {
	t.Helper()
	cfg := Config{Handler: h}.withDefaults()
	require.NoError(t, cfg.validate())
	e := &Engine{cfg: cfg, store: s, life: make(chan struct{}, 1)}
	e.mu.starts, e.mu.halt = context.WithCancel(context.Background())
	return e
}

// lateness is what a run of many tasks showed.
type lateness struct {
	early     int           // began before the store's clock was there
	runs      int           //
	quiet     time.Duration // the most, of those that were due when the last step was long ago
	afterStep time.Duration // the most, of the others
}

// longAgo is how long after a step the engine has taken it in: it reads the clock every two
// seconds, looks at the wheel four times a second, and rebuilds one that stands still.
const longAgo = 4 * time.Second

// shownBy runs tasks over two hours of the store's time while steps changes its
// clock, in a bubble, and tells what came of them.
func shownBy(t *testing.T, offset time.Duration, steps func(s *stepped)) (l lateness) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		const n = 4000
		s := newStepped(offset)
		var mu sync.Mutex
		due := make(map[string]time.Time)
		eng := newOn(t, s, func(_ context.Context, task executor.Task) error {
			mu.Lock()
			defer mu.Unlock()
			late := s.dueFor(due[task.ID])
			l.runs++
			switch {
			case late < 0 || task.Now.Before(due[task.ID]):
				l.early++
			case s.lastStep(late) >= longAgo:
				l.quiet = max(l.quiet, late)
			default:
				l.afterStep = max(l.afterStep, late)
			}
			return nil
		})
		require.NoError(t, eng.Start(t.Context()))
		var list []Due
		for i := range n {
			d := Due{ID: fmt.Sprint(i), At: time.UnixMilli(s.now().Add(time.Duration(i) * 2 * time.Hour / n).UnixMilli())}
			due[d.ID] = d.At
			list = append(list, d)
		}
		mu.Lock() // what is due at once waits until all is known
		require.NoError(t, eng.ScheduleMany(t.Context(), list))
		mu.Unlock()
		steps(s)
		for range 400 { // minutes: 5 hours suffice for the worst
			if depth, err := eng.Depth(t.Context()); err == nil && depth == (persist.Depth{}) {
				break
			}
			time.Sleep(time.Minute)
		}
		require.NoError(t, eng.Stop(t.Context()))
		require.Equal(t, n, l.runs, "each ran once")
	})
	return l
}

func TestNothingIsEarlyNorLateWhateverTheStoresClockDoes(t *testing.T) {
	t.Parallel()
	none := func(*stepped) {}
	plain := shownBy(t, 0, none)
	require.Zero(t, plain.early)
	t.Logf("without: %+v", plain)
	seed := persisttest.Seeds(t, 1)[0]
	for name, c := range map[string]struct {
		offset time.Duration
		steps  func(s *stepped)
	}{
		"ten minutes ahead":  {10 * time.Minute, none},
		"ten minutes behind": {-10 * time.Minute, none},
		"an hour forwards": {0, func(s *stepped) {
			time.Sleep(30 * time.Minute)
			s.step(time.Hour)
		}},
		"an hour back": {0, func(s *stepped) {
			time.Sleep(30 * time.Minute)
			s.step(-time.Hour)
		}},
		"random steps": {0, func(s *stepped) {
			t.Logf("ORDERWHEEL_SEED=%d", seed)
			rnd := rand.New(rand.NewPCG(seed, 0))
			for range 100 {
				time.Sleep(12*time.Second + time.Duration(rnd.Int64N(int64(time.Minute))))
				s.step(time.Duration(rnd.Int64N(int64(20*time.Minute))) - 10*time.Minute)
			}
			s.step(0)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			l := shownBy(t, c.offset, c.steps)
			t.Logf("%+v", l)
			require.Zero(t, l.early)
			require.LessOrEqual(t, l.quiet, plain.quiet+time.Millisecond, "as late as without")
			require.LessOrEqual(t, l.afterStep, longAgo, "a step is taken in")
		})
	}
}

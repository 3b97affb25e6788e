package russellluo

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/wheel"
)

var _ wheel.Factory = New

// fired is what came out of a wheel, with the clock's reading at the hand-over.
type fired struct {
	mu  sync.Mutex
	ids []string
	due []int64
	at  []int64
}

func (f *fired) add(batch []wheel.Due) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, d := range batch {
		f.ids = append(f.ids, d.ID)
		f.due = append(f.due, d.DueMS)
		f.at = append(f.at, nowMS())
	}
}

// all waits until the bubble is quiet, then returns what has been fired.
func (f *fired) all() (ids []string, due, at []int64) {
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.ids), slices.Clone(f.due), slices.Clone(f.at)
}

func (f *fired) count() int {
	ids, _, _ := f.all()
	return len(ids)
}

func nowMS() int64 { return time.Now().UnixMilli() }

// setup runs test in a bubble with a clock of its own, on a started wheel that
// is stopped at the end.
func setup(t *testing.T, test func(t *testing.T, w wheel.Wheel, f *fired)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, f := New(nowMS), &fired{}
		w.Start(f.add)
		test(t, w, f)
		w.Stop()
	})
}

func TestFarDueTimesStayArmedForYears(t *testing.T) {
	const day = 24 * 3600_000
	setup(t, func(t *testing.T, w wheel.Wheel, f *fired) {
		start := nowMS()
		far := map[string]int64{"25 days": 25 * day, "50 days": 50 * day, "3 years": 3 * 365 * day}
		for id, in := range far {
			w.Schedule(id, start+in)
		}
		w.Schedule("300 years", start+300*365*day)
		w.Schedule("last", math.MaxInt64)

		time.Sleep(10 * 365 * 24 * time.Hour)
		ids, _, at := f.all()
		require.ElementsMatch(t, []string{"25 days", "50 days", "3 years"}, ids)
		for i, id := range ids {
			require.InDelta(t, start+far[id], at[i], 1, id)
		}
		require.Equal(t, 2, w.Len())
		require.True(t, w.Cancel("last"))
		require.True(t, w.Cancel("300 years"))
	})
}

func TestDelayNeverOverflows(t *testing.T) {
	t.Parallel()
	ends := []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, 1 << 53, math.MaxInt64 - 1, math.MaxInt64}
	for _, now := range ends {
		for _, due := range ends {
			d := delay(now, due)
			require.GreaterOrEqual(t, d, time.Duration(0))
			require.LessOrEqual(t, d, maxDelay)
			require.Equal(t, due > now, d > 0, "now %d due %d", now, due)
		}
	}
}

// Case 17: the timer of before the move comes, and must neither fire nor forget
// the moved task.
func TestStaleTimerLeavesTheMovedTaskAlone(t *testing.T) {
	setup(t, func(t *testing.T, w wheel.Wheel, f *fired) {
		start := nowMS()
		w.Schedule("a", start+8000)
		stale := w.(*engine).mu.armed["a"]
		time.Sleep(6 * time.Second)
		w.Schedule("a", start+13_000)
		w.(*engine).expired(stale) // as if its Stop had been lost
		time.Sleep(3 * time.Second)
		require.Zero(t, f.count())
		require.True(t, w.Cancel("a"))
		require.False(t, w.Cancel("a"))
		time.Sleep(time.Minute)
		require.Zero(t, f.count())
	})
}

func TestWhatComesEarlyByTheInjectedClockIsArmedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var behind atomic.Int64
		w, f := New(func() int64 { return nowMS() - behind.Load() }), &fired{}
		w.Start(f.add)
		start := nowMS()
		w.Schedule("a", start+1000)
		behind.Store(5000) // the store's clock is set back
		time.Sleep(5999 * time.Millisecond)
		require.Zero(t, f.count())
		time.Sleep(2 * time.Millisecond)
		require.Equal(t, 1, f.count())
		w.Stop()
	})
}

// A wheel that hangs, as in the library's issue #53, must not hang its owner.
func TestStopGivesUpOnAHungLibrary(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := New(nowMS).(*engine)
		w.Start(func([]wheel.Due) {})
		w.arming.Add(1) // an adder that hangs in the library
		w.Schedule("a", nowMS()+1000)
		w.Stop()
		require.Zero(t, w.Len())
		w.arming.Done() // or the bubble would not end
	})
}

func TestNextDueIsALowerBoundWithinAGrain(t *testing.T) {
	setup(t, func(t *testing.T, w wheel.Wheel, _ *fired) {
		_, ok := w.NextDue()
		require.False(t, ok)
		start := nowMS() + 10_000
		for i := range int64(100) {
			w.Schedule(fmt.Sprint(i), start+i*1000)
		}
		for i := range int64(100) {
			next, ok := w.NextDue()
			require.True(t, ok)
			require.LessOrEqual(t, next, start+i*1000)
			require.Greater(t, next, start+i*1000-1<<grain)
			require.True(t, w.Cancel(fmt.Sprint(i)))
		}
		_, ok = w.NextDue()
		require.False(t, ok)
	})
}

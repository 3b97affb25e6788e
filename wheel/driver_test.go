package wheel

import (
	"bytes"
	"fmt"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// clock is an injected clock that counts how often it is read.
type clock struct {
	reads  atomic.Int64
	stepMS atomic.Int64
}

func (c *clock) nowMS() int64 {
	c.reads.Add(1)
	return time.Now().UnixMilli() + c.stepMS.Load()
}

// An idle wheel wakes up a few times a second to see whether the clock has
// jumped, however much is armed, and never when nothing is armed.
func TestAnIdleWheelSleeps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c clock
		w := New(c.nowMS)
		defer w.Stop()
		w.Start(func([]Due) { t.Error("fired") })

		synctest.Wait()
		before := c.reads.Load()
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, before, c.reads.Load(), "nothing is armed")

		due := c.nowMS() + 3600_000
		for i := range 1000 {
			w.Schedule(strconv.Itoa(i), due+int64(i))
		}
		time.Sleep(time.Second)
		before = c.reads.Load()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.LessOrEqual(t, c.reads.Load()-before, int64(10*time.Second/maxNap+2))
	})
}

func TestAJumpOfTheClockIsNoticedWithinANap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c clock
		var fired atomic.Bool
		w := New(c.nowMS)
		defer w.Stop()
		w.Start(func([]Due) { fired.Store(true) })
		w.Schedule("a", c.nowMS()+3600_000)
		time.Sleep(time.Minute)
		c.stepMS.Store(3600_000)
		time.Sleep(maxNap)
		synctest.Wait()
		require.True(t, fired.Load())
	})
}

// Memory of cancelled ids goes back also when nothing fires.
func TestCancelWakesTheDriverToTidyUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c clock
		w := New(c.nowMS).(*engine)
		defer w.Stop()
		w.Start(func([]Due) {})
		due := c.nowMS() + 24*3600_000
		const n = 100_000
		for i := range n {
			w.Schedule(strconv.Itoa(i), due+int64(i))
		}
		for i := range n {
			if i%100 != 0 {
				require.True(t, w.Cancel(strconv.Itoa(i)))
			}
		}
		synctest.Wait()
		require.Equal(t, n/100, w.Len())
		for i := range w.shards {
			require.False(t, w.shards[i].mu.core.untidy())
			require.LessOrEqual(t, w.shards[i].mu.core.slab.held, 2)
			require.NoError(t, w.shards[i].mu.core.audit())
		}
	})
}

// Case 30: handing over takes no goroutine but the driver.
func TestAStormTakesNoGoroutine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c clock
		var batches, ids int
		drivers := make(map[string]bool)
		w := New(c.nowMS)
		w.Start(func(batch []Due) {
			batches++ // unguarded: -race would tell of a second goroutine
			ids += len(batch)
			drivers[goroutine()] = true
		})
		due := c.nowMS() + 60_000
		for i := range 100_000 {
			w.Schedule(strconv.Itoa(i), due)
		}
		time.Sleep(2 * time.Minute)
		w.Stop()
		require.Equal(t, 100_000, ids)
		require.Equal(t, 1, batches)
		require.Len(t, drivers, 1)
	})
}

// goroutine is the first line of the stack, which has the goroutine's number.
func goroutine() string {
	buf := make([]byte, 64)
	line, _, _ := bytes.Cut(buf[:runtime.Stack(buf, false)], []byte(" ["))
	return string(line)
}

// Whether a cancel is answered true or false while a storm is handed over, the
// id is handed over if and only if it is false.
func TestACancelDuringAStormIsFinal(t *testing.T) {
	t.Parallel()
	deadline := time.Now().Add(30 * time.Second)
	for both := false; !both; both = cancelDuringStorm(t) {
		require.True(t, time.Now().Before(deadline), "cancels and hand-over never met")
	}
}

// cancelDuringStorm tells whether some ids were cancelled and others handed over.
func cancelDuringStorm(t *testing.T) (both bool) {
	var now atomic.Int64
	w := New(now.Load)
	const n = 50_000
	var fired [n]atomic.Int32
	w.Start(func(batch []Due) {
		for _, d := range batch {
			if i, err := strconv.Atoi(d.ID); err == nil {
				fired[i].Add(1)
			}
		}
	})
	for i := range n {
		w.Schedule(strconv.Itoa(i), 1000)
	}
	cancelled := make([]bool, n)
	now.Store(1000)
	w.Schedule("wakes the driver", 0)
	for i := range n {
		cancelled[i] = w.Cancel(strconv.Itoa(i))
	}
	for deadline := time.Now().Add(10 * time.Second); w.Len() > 0; time.Sleep(time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "the storm does not end")
	}
	w.Stop()
	count := 0
	for i := range n {
		want := int32(1)
		if cancelled[i] {
			want = 0
			count++
		}
		require.Equal(t, want, fired[i].Load(), fmt.Sprint("id ", i, " cancelled ", cancelled[i]))
	}
	return 0 < count && count < n
}

// What is armed while the driver falls asleep must not be slept past.
func TestWhatIsArmedWhileTheDriverFallsAsleepIsSeen(t *testing.T) {
	t.Parallel()
	w := New(func() int64 { return 0 }).(*engine)
	d := w.driver

	until := d.nextLook()
	require.EqualValues(t, never, until)
	w.Schedule("a", 1000) // the driver is awake, so nobody wakes it
	require.Empty(t, d.wake)
	require.False(t, d.fallAsleep(until))

	until = d.nextLook()
	require.True(t, d.fallAsleep(until))
	w.Schedule("later", 1001)
	require.Empty(t, d.wake)
	w.Schedule("sooner", 500)
	require.Len(t, d.wake, 1)
}

// The same with all in motion: when nothing is armed, a lost wake-up is for
// good.
func TestNoWakeUpIsLost(t *testing.T) {
	t.Parallel()
	w := New(func() int64 { return 1 })
	defer w.Stop()
	var fired atomic.Int64
	w.Start(func([]Due) { fired.Add(1) })
	for i := range int64(2000) {
		w.Schedule("a", 1)
		deadline := time.Now().Add(10 * time.Second)
		for fired.Load() == i {
			runtime.Gosched()
			require.True(t, time.Now().Before(deadline), "round %d: the driver sleeps", i)
		}
	}
}

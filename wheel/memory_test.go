package wheel

import (
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// heap is what is in use after a full collection, in bytes.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// stormLen is how many ids a storm has: 10 million where ORDERWHEEL_LONG is
// set.
func stormLen() int {
	if os.Getenv("ORDERWHEEL_LONG") != "" {
		return 10_000_000
	}
	return 500_000
}

// settled waits until the driver has nothing left to do, then returns the heap.
func settled(t *testing.T, w *engine) int64 {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		busy := false
		for i := range w.shards {
			s := &w.shards[i]
			s.mu.Lock()
			busy = busy || !s.mu.closed && s.mu.core.untidy()
			s.mu.Unlock()
		}
		if !busy {
			return heap()
		}
		require.True(t, time.Now().Before(deadline), "it does not tidy up")
	}
}

// requireBack fails if more than percent of the heap of before has stayed.
func requireBack(t *testing.T, before, after, percent int64) {
	t.Helper()
	t.Logf("heap: %d KiB before, %d KiB after", before>>10, after>>10)
	require.LessOrEqual(t, after, before+before*percent/100)
}

// These tests look at the heap of the whole process, so they do not run in
// parallel with others.

func TestMemoryGoesBackAfterAStorm(t *testing.T) {
	before, after := heapAroundStorm(t, 1_800_000, func(*engine, int) {})
	requireBack(t, before, after, 10)
}

func TestMemoryGoesBackAfterAStormOfOneMillisecond(t *testing.T) {
	before, after := heapAroundStorm(t, 1, func(*engine, int) {})
	requireBack(t, before, after, 10)
}

// The worst for the slab: what stays armed was armed amid the storm, a node
// here and a node there.
func TestMemoryGoesBackAroundWhatStays(t *testing.T) {
	every := stormLen() / standing
	before, after := heapAroundStorm(t, 1_800_000, func(w *engine, i int) {
		if i%every == 0 {
			w.Schedule("standing"+strconv.Itoa(i/every), 25*hour+int64(i))
		}
	})
	requireBack(t, before, after, 25)
}

const (
	standing = 100_000 // ids that are armed before, during and after a storm
	hour     = 3600_000
)

// armStanding arms them among as many others that are cancelled again, so that the
// index is as full as it is after a storm.
func armStanding(t *testing.T, w *engine) {
	t.Helper()
	for i := range standing {
		w.Schedule("standing"+strconv.Itoa(i), 24*hour+int64(i))
		w.Schedule("other"+strconv.Itoa(i), 24*hour+int64(i))
	}
	for i := range standing {
		require.True(t, w.Cancel("other"+strconv.Itoa(i)))
	}
}

// heapAroundStorm is the heap before and after a storm of so many milliseconds. It
// calls amid with the number of each id of the storm.
func heapAroundStorm(t *testing.T, spreadMS int, amid func(w *engine, i int)) (before, after int64) {
	var now, fired atomic.Int64
	w := New(now.Load).(*engine)
	defer w.Stop()
	w.Start(func(batch []Due) { fired.Add(int64(len(batch))) })
	armStanding(t, w)
	before = settled(t, w)

	n := stormLen()
	for i := range n {
		w.Schedule(strconv.Itoa(i), hour+int64(i%spreadMS))
		amid(w, i)
	}
	require.Greater(t, heap(), 2*before)
	for fired.Load() < int64(n) {
		now.Add(1000)
		time.Sleep(100 * time.Microsecond)
	}
	require.Equal(t, standing, w.Len())
	return before, settled(t, w)
}

// Case 26: what is cancelled does not stay until its slot comes.
func TestMemoryOfCancelledIDsGoesBack(t *testing.T) {
	var now atomic.Int64
	w := New(now.Load).(*engine)
	defer w.Stop()
	w.Start(func([]Due) {})
	armStanding(t, w)
	before := settled(t, w)
	for i := range 1_000_000 {
		id := strconv.Itoa(i)
		w.Schedule(id, 24*hour+int64(i))
		if i >= 1000 { // some live together
			require.True(t, w.Cancel(strconv.Itoa(i-1000)))
		}
	}
	for i := 999_000; i < 1_000_000; i++ {
		require.True(t, w.Cancel(strconv.Itoa(i)))
	}
	requireBack(t, before, settled(t, w), 10)
}

// Case 6: nothing stays after Stop.
func TestMemoryGoesBackAfterStop(t *testing.T) {
	ballast := make([]byte, 20<<20) // what a small process has anyway
	before := heap()
	w := New(func() int64 { return 0 })
	w.Start(func([]Due) {})
	for i := range 1_000_000 {
		w.Schedule(strconv.Itoa(i), hour)
	}
	w.Stop()
	after := heap()
	require.LessOrEqual(t, after, before+before/20)
	runtime.KeepAlive(w)
	runtime.KeepAlive(ballast)
}

// In steady state no operation allocates.
func TestNoOperationAllocates(t *testing.T) {
	w := New(func() int64 { return 0 })
	ids := make([]string, 20_000)
	for i := range ids {
		ids[i] = strconv.Itoa(i)
		w.Schedule(ids[i], int64(i)*100)
	}
	round := func() {
		for i, id := range ids {
			w.Cancel(id)
			w.Schedule(id, int64(i)*100)
			w.Schedule(id, int64(i)*100+1)
		}
	}
	round() // what grows once has grown
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	round()
	runtime.ReadMemStats(&after)
	require.Less(t, after.Mallocs-before.Mallocs, uint64(50), "in 60,000 operations") // the runtime's own
}

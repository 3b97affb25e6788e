package wheel

import (
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// What went wrong for the users of other timing wheels, by the number it has in
// the project's list of cases. Most are tests of package wheeltest, which every
// engine passes; tests whose names stand here without a package are in this
// one.
//
//	 1 the wheel hangs on its own lock       TestBusyAddersDoNotHangTheWheel
//	 2 a call blocks when the loop has left  wheeltest: every call returns, ...
//	 4 only one of a slot runs               wheeltest: all of one millisecond ...
//	 6 pending timers stay after Stop        TestMemoryGoesBackAfterStop
//	 8 data races                            wheeltest: every call returns, ...
//	10 local clock set forward               TestOnlyTheInjectedClockDecides
//	14 missed ticks are not caught up        wheeltest: a slow receiver delays ...
//	15 a multiple of the round is a lap late TestEveryLevelBoundaryFiresAtItsMillisecond
//	17 a stale tombstone deletes the moved   wheeltest: a moved id can be cancelled ...
//	18 armed again after Stop never fires    wheeltest: a new engine fires ...
//	19 expires one coarse unit late          TestEveryLevelBoundaryFiresAtItsMillisecond
//	20 beyond the wheel fires early          TestEveryLevelBoundaryFiresAtItsMillisecond
//	22 due in the past waits                 wheeltest: what is due in the past ...
//	26 cancelled ones stay until their slot  TestMemoryOfCancelledIDsGoesBack
//	27 moving multiplies timers              wheeltest: the last due time wins
//	28 fire calls back, lock order           wheeltest: fire may call every method ...
//	30 a goroutine per fire                  TestAStormTakesNoGoroutine
//
// Not of this package: 7 (a handler panics: the executor runs handlers), 11
// (monotonic time stored: the store keeps Unix milliseconds, and so does a Due)
// and 24 (MaxPending: the front door counts). Of 28, Stop within fire is left out:
// Stop waits for fire, so the contract forbids it. 31 (a short ticker panics in Go
// 1.23.0 to 1.23.2) needs no test: go.mod asks for a later Go, and the driver
// has a timer, not a ticker.

// Case 1, with what makes it likely: short delays, a tick of 1 ms, more adders
// than processors, and adders that stall between reading the clock and
// inserting.
func TestBusyAddersDoNotHangTheWheel(t *testing.T) {
	t.Parallel()
	rounds := 1
	if os.Getenv("ORDERWHEEL_LONG") != "" {
		rounds = 60
	}
	for range rounds {
		busyAdders(t, time.Second)
	}
}

func busyAdders(t *testing.T, d time.Duration) {
	nowMS := func() int64 { return time.Now().UnixMilli() }
	w := New(nowMS)
	var mu sync.Mutex
	fired := make(map[string]int)
	w.Start(func(batch []Due) {
		mu.Lock()
		defer mu.Unlock()
		for _, d := range batch {
			fired[d.ID]++
		}
	})

	var armed atomic.Int64
	var adders sync.WaitGroup
	end := time.Now().Add(d)
	for a := range 8 {
		adders.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(a), 0))
			for i := 0; time.Now().Before(end); i++ {
				due := nowMS() + 1 + rnd.Int64N(40)
				if i%1000 == 0 {
					time.Sleep(5 * time.Millisecond)
				}
				w.Schedule(strconv.Itoa(a)+"-"+strconv.Itoa(i), due)
				if armed.Add(1)%1000 == 0 && w.Len() > 100_000 {
					time.Sleep(time.Millisecond) // eight adders are faster than one driver
				}
			}
		})
	}
	adders.Wait()
	for deadline := time.Now().Add(10 * time.Second); w.Len() > 0; time.Sleep(time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "%d are left", w.Len())
	}
	w.Stop()
	require.Len(t, fired, int(armed.Load()))
	for id, n := range fired {
		require.Equal(t, 1, n, id)
	}
}

// Case 10: the local clock runs on, the injected one does not.
func TestOnlyTheInjectedClockDecides(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var now, fired atomic.Int64
		w := New(now.Load)
		defer w.Stop()
		w.Start(func(batch []Due) { fired.Add(int64(len(batch))) })
		for i := range 1000 {
			w.Schedule(strconv.Itoa(i), int64(i+1))
		}
		time.Sleep(time.Minute)
		require.Zero(t, fired.Load())
		now.Store(500)
		time.Sleep(time.Minute)
		require.EqualValues(t, 500, fired.Load())
	})
}

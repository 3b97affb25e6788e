package orderwheel_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/internal/redistest"
	"github.com/orderwheel/orderwheel/persist/persisttest"
)

// Case 30: goroutines do not grow with what is due. Not parallel: it counts them.
func TestAStormNeedsNoMoreGoroutinesThanThereAreWorkers(t *testing.T) {
	n := 20_000
	if long() {
		n = 100_000
	}
	const workers = 16
	before := runtime.NumGoroutine()
	var r runs
	eng := start(t, redistest.Start(t).Client(t), r.handle, func(c *orderwheel.Config) { c.Workers = workers })
	require.NoError(t, eng.ScheduleMany(t.Context(), dues(n, time.Now().Add(time.Second))))
	most := 0
	for end := time.Now().Add(hang); r.count() < n; time.Sleep(time.Millisecond) {
		most = max(most, runtime.NumGoroutine()-before)
		require.True(t, time.Now().Before(end), "%d of %d ran", r.count(), n)
	}
	require.LessOrEqual(t, most, workers+32)
	require.Len(t, r.byID(), n)
	require.Equal(t, n, r.count())
}

// Case 8: all calls at once, with Stop and Start among them. (With -race it is more
// than that.) Whatever the order was, nothing is lost, stuck or armed in vain.
func TestCallsOfAllKindsRacedByStopAndStart(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		seed := persisttest.Seeds(t, 1)[0]
		t.Logf("ORDERWHEEL_SEED=%d (which fixes the operations, not their order)", seed)
		var r runs
		eng := start(t, rdb, r.handle, func(c *orderwheel.Config) { c.SweepEvery, c.Grace = 5*time.Millisecond, time.Millisecond })
		over := make(chan struct{})
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(seed, uint64(g)))
				for {
					select {
					case <-over:
						return
					default:
					}
					if err := anyCall(t, eng, rnd); err != nil && !errors.Is(err, orderwheel.ErrClosed) {
						t.Error(err)
						return
					}
				}
			})
		}
		for range 10 {
			time.Sleep(10 * time.Millisecond)
			stop(t, eng)
			require.NoError(t, eng.Start(t.Context()))
		}
		close(over)
		wg.Wait()
		_, err := eng.CancelMany(t.Context(), idsOf(dues(50, time.Time{})))
		require.NoError(t, err)
		empty(t, rdb)
		require.Eventually(t, func() bool { return eng.Stats().Armed == 0 }, hang, time.Millisecond)
		require.NotZero(t, r.count())
	})
}

// anyCall makes one call on some of fifty ids.
func anyCall(t *testing.T, eng *orderwheel.Engine, rnd *rand.Rand) error {
	id := fmt.Sprint(rnd.IntN(50))
	at := time.Now().Add(time.Duration(rnd.Int64N(int64(20 * time.Millisecond))))
	var err error
	switch rnd.IntN(8) {
	case 0, 1, 2:
		err = eng.Schedule(t.Context(), id, at)
	case 3:
		_, err = eng.Cancel(t.Context(), id)
	case 4:
		err = eng.ScheduleMany(t.Context(), dues(rnd.IntN(50), at))
	case 5:
		_, err = eng.CancelMany(t.Context(), idsOf(dues(rnd.IntN(50), at)))
	case 6:
		_, err = eng.Lookup(t.Context(), id)
	case 7:
		_, err = eng.Depth(t.Context())
		eng.Stats()
		eng.Health()
	}
	return err
}

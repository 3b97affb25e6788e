package recovery

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/persist"
)

// ask reads a store whose clock is ahead of ours by offset, with that much time
// on the way there and back.
func ask(offset, there, back time.Duration) persist.Sample {
	s := persist.Sample{Sent: time.Now()}
	time.Sleep(there)
	s.StoreUS = time.Now().Add(offset).UnixMicro()
	time.Sleep(back)
	s.Received = time.Now()
	return s
}

func TestClockIsNeverAheadOfTheStores(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 2))
			c := NewClock()
			offset := time.Duration(rnd.Int64N(int64(48*time.Hour))) - 24*time.Hour
			best := time.Hour
			for range 200 {
				there, back := time.Duration(rnd.Int64N(int64(20*time.Millisecond))), time.Duration(rnd.Int64N(int64(20*time.Millisecond)))
				c.Observe(ask(offset, there, back))
				best = min(best, back)
				behind := time.Now().Add(offset).UnixMilli() - c.NowMS()
				require.GreaterOrEqual(t, behind, int64(0), "seed %d", seed)
				require.LessOrEqual(t, behind, back.Milliseconds()+1, "seed %d: this reading alone would be as good", seed)
				time.Sleep(time.Duration(rnd.Int64N(int64(time.Second))))
			}
			// The best of many answers holds, less the drift that is allowed for.
			behind := time.Now().Add(offset).UnixMilli() - c.NowMS()
			require.Less(t, behind, int64(20), "seed %d", seed)
		})
	}
}

func TestAStepOfTheStoresClockStartsAfresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewClock()
		for _, offset := range []time.Duration{0, time.Hour, -time.Hour, -time.Hour + 30*time.Millisecond} {
			c.Observe(ask(offset, time.Millisecond, time.Millisecond))
			require.WithinDuration(t, time.Now().Add(offset), time.UnixMilli(c.NowMS()), 3*time.Millisecond)
		}
	})
}

func TestAWideReadingDoesNotSpoilANarrowOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewClock()
		c.Observe(ask(time.Hour, 0, 0))
		c.Observe(ask(time.Hour, 0, time.Second))
		require.WithinDuration(t, time.Now().Add(time.Hour), time.UnixMilli(c.NowMS()), 3*time.Millisecond)
	})
}

// A store whose clock runs 400 ppm slow or fast is followed, and never passed.
func TestADriftingClockIsFollowed(t *testing.T) {
	for _, ppm := range []int64{-400, 400} {
		for _, every := range []time.Duration{clockEvery, 1500 * time.Microsecond} {
			synctest.Test(t, func(t *testing.T) {
				c, start := NewClock(), time.Now()
				store := func() time.Time {
					return time.Now().Add(time.Since(start) * time.Duration(ppm) / 1_000_000)
				}
				for i := range 20_000 {
					sent := time.Now()
					if i > 0 && every < time.Second {
						time.Sleep(20 * time.Millisecond) // only the first answer is quick
					}
					c.Observe(persist.Sample{Sent: sent, Received: time.Now(), StoreUS: store().UnixMicro()})
					require.WithinDuration(t, store(), time.UnixMilli(c.NowMS()), 25*time.Millisecond)
					require.False(t, time.UnixMilli(c.NowMS()).After(store().Add(time.Millisecond)), "ahead")
					time.Sleep(every)
				}
			})
		}
	}
}

// However long the store is away, and however its clock drifts meanwhile.
func TestTheLowerBoundIsNeverAheadOfTheStoresClockAndFallsBehindByTheDriftAlone(t *testing.T) {
	for _, ppm := range []int64{-500, 0, 500} {
		synctest.Test(t, func(t *testing.T) {
			c, start := NewClock(), time.Now()
			require.Less(t, c.LowerMS(), int64(10), "nothing is known")
			store := func() time.Time {
				return time.Now().Add(time.Hour).Add(time.Since(start) * time.Duration(ppm) / 1_000_000)
			}
			for range 100 {
				sent := time.Now()
				time.Sleep(time.Millisecond)
				c.Observe(persist.Sample{Sent: sent, Received: time.Now(), StoreUS: store().UnixMicro()})
				time.Sleep(time.Second)
			}
			for range 100 {
				time.Sleep(time.Minute)
				behind := store().UnixMilli() - c.LowerMS()
				require.GreaterOrEqual(t, behind, int64(0))
				require.LessOrEqual(t, behind, time.Since(start).Milliseconds()/1000+10)
				require.LessOrEqual(t, c.LowerMS(), c.NowMS())
			}
		})
	}
}

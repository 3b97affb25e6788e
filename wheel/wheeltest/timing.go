package wheeltest

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/wheel"
)

const (
	second = 1000
	hour   = 3600 * second
	day    = 24 * hour
	year   = 365 * day
)

// timing is when ids are handed over.
var timing = []conformance{
	{name: "an id is handed over at its due time, once", test: func(t *testing.T, s *setup) {
		w, start := s.start(t), s.nowMS()
		for in := int64(0); in < 100; in++ {
			w.Schedule(fmt.Sprint(in), start+in*in)
		}
		time.Sleep(11 * time.Second)
		require.Len(t, s.hits(), 100)
		requireOnTime(t, s.hits())
		require.Zero(t, w.Len())
	}},
	{name: "delays around every power of two are neither early nor late", test: func(t *testing.T, s *setup) {
		w, start := s.start(t), s.nowMS()
		n := 0
		for bit := range 23 { // 2.3 hours
			for off := int64(-2); off <= 2; off++ {
				w.Schedule(fmt.Sprint(bit, off), start+1<<bit+off)
				n++
			}
		}
		time.Sleep(3 * time.Hour)
		hits := s.hits()
		require.Len(t, hits, n)
		for _, h := range hits {
			h.DueMS = max(h.DueMS, start)
			requireOnTime(t, []hit{h})
		}
	}},
	{name: "due times at multiples of a round are not a round late", test: func(t *testing.T, s *setup) {
		// Cases 15 and 19: rounds of the levels of both engines, and common
		// others.
		w, start := s.start(t), s.nowMS()
		n := 0
		for _, round := range []int64{20, 60, 64, 512, 1000, 1024, 3600, 4096, 60_000, 262_144, 524_288} {
			for k := int64(1); k <= 4; k++ {
				for off := int64(-1); off <= 1; off++ {
					aligned := (start/round + k) * round
					w.Schedule(fmt.Sprint(round, k, off), start+k*round+off)
					w.Schedule(fmt.Sprint("aligned", round, k, off), max(aligned+off, start))
					n += 2
				}
			}
		}
		time.Sleep(time.Hour)
		require.Len(t, s.hits(), n)
		requireOnTime(t, s.hits())
	}},
	{name: "what is due in the past is handed over at once", test: func(t *testing.T, s *setup) {
		w := s.start(t)
		for i, due := range []int64{s.nowMS(), s.nowMS() - second, s.nowMS() - 29*day, 0, -1, math.MinInt64} {
			w.Schedule(fmt.Sprint(i), due)
		}
		require.Len(t, s.hits(), 6)
	}},
	{name: "an earlier one armed later does not wait for the later one", test: func(t *testing.T, s *setup) {
		w, start := s.start(t), s.nowMS()
		w.Schedule("late", start+50*second)
		time.Sleep(10 * time.Millisecond)
		w.Schedule("soon", start+3*second)
		time.Sleep(4 * time.Second)
		require.Equal(t, []string{"soon"}, s.ids())
		requireOnTime(t, s.hits())
	}},
	{name: "all of one millisecond are handed over", test: func(t *testing.T, s *setup) {
		w, due := s.start(t), s.nowMS()+second
		for i := range 10_000 {
			w.Schedule(fmt.Sprint(i), due)
		}
		time.Sleep(2 * time.Second)
		require.Len(t, s.hits(), 10_000)
		requireOnTime(t, s.hits())
	}},
	{name: "one slot is one batch", test: func(t *testing.T, s *setup) {
		w, start := s.start(t), s.nowMS()
		for i := range 10_000 {
			w.Schedule(fmt.Sprint(i), start+second+int64(i)%10)
		}
		time.Sleep(2 * time.Second)
		batchOf := make(map[int64]int)
		for _, h := range s.hits() {
			if of, ok := batchOf[h.DueMS]; ok {
				require.Equal(t, of, h.batch)
			}
			batchOf[h.DueMS] = h.batch
		}
		require.Len(t, batchOf, 10)
	}},
	{name: "a jump of the clock hands over all that became due", test: func(t *testing.T, s *setup) {
		w, start := s.start(t), s.nowMS()
		in := []int64{60 * second, hour, 25 * day, 50 * day, 3 * year}
		for _, d := range in {
			w.Schedule(fmt.Sprint(d), start+d)
		}
		w.Schedule("300 years", start+300*year)
		w.Schedule("never", math.MaxInt64)
		for i, d := range in {
			s.stepMS.Store(d - 1 - (time.Now().UnixMilli() - start)) // a millisecond before
			require.Len(t, s.hits(), i, "before %d", d)
			time.Sleep(time.Second)
			require.Len(t, s.hits(), i+1, "after %d", d)
		}
		require.Equal(t, 2, w.Len())
		s.stepMS.Add(400 * year)
		time.Sleep(time.Second)
		require.Len(t, s.hits(), len(in)+1)
		require.True(t, w.Cancel("never"))
	}},
	{name: "far due times stay armed and can be cancelled", test: func(t *testing.T, s *setup) {
		w, start := s.start(t), s.nowMS()
		far := []int64{start + 25*day, start + 50*day, start + 3*year, start + 300*year, math.MaxInt64 - 1, math.MaxInt64}
		for _, due := range far {
			w.Schedule(fmt.Sprint(due), due)
		}
		time.Sleep(time.Hour)
		require.Empty(t, s.hits())
		require.Equal(t, len(far), w.Len())
		for _, due := range far {
			require.True(t, w.Cancel(fmt.Sprint(due)))
		}
	}},
	{name: "a clock that steps back makes nothing early", test: func(t *testing.T, s *setup) {
		w, start := s.start(t), s.nowMS()
		w.Schedule("a", start+second)
		time.Sleep(500 * time.Millisecond)
		s.stepMS.Store(-hour)
		time.Sleep(time.Hour)
		require.Empty(t, s.hits())
		time.Sleep(501 * time.Millisecond)
		require.Len(t, s.hits(), 1)
		requireOnTime(t, s.hits())
	}},
	{name: "after a step back nothing happens until the clock has caught up", test: func(t *testing.T, s *setup) {
		w := s.start(t)
		w.Schedule("a", s.nowMS())
		require.Len(t, s.hits(), 1)
		s.stepMS.Store(-10 * second)
		w.Schedule("past", s.nowMS()-second)
		w.Schedule("soon", s.nowMS()+second)
		time.Sleep(9 * time.Second)
		require.Len(t, s.hits(), 1)
		time.Sleep(time.Second + time.Millisecond)
		require.Equal(t, []string{"a", "past", "soon"}, s.ids())
	}},
	{name: "NextDue is never above the earliest due time", test: func(t *testing.T, s *setup) {
		w, start := s.start(t), s.nowMS()
		_, ok := w.NextDue()
		require.False(t, ok)
		for i := int64(100); i > 0; i-- {
			due := start + i*i*i*100
			w.Schedule(fmt.Sprint(i), due)
			next, ok := w.NextDue()
			require.True(t, ok)
			require.LessOrEqual(t, next, due)
		}
		for i := int64(1); i <= 100; i++ {
			next, ok := w.NextDue()
			require.True(t, ok)
			require.LessOrEqual(t, next, start+i*i*i*100)
			require.True(t, w.Cancel(fmt.Sprint(i)))
		}
		_, ok = w.NextDue()
		require.False(t, ok)
	}},
	{name: "NextDue moves on when ids are handed over", test: func(t *testing.T, s *setup) {
		w, start := s.start(t), s.nowMS()
		w.Schedule("a", start+second)
		w.Schedule("b", start+hour)
		time.Sleep(time.Minute)
		next, ok := w.NextDue()
		require.True(t, ok)
		require.Greater(t, next, s.nowMS(), "the bound has passed, though nothing is due")
	}},
	{name: "a slow receiver delays but loses nothing", test: func(t *testing.T, s *setup) {
		// Case 14: the loop stalls for 5 s.
		w, start := s.fresh(), s.nowMS()
		w.Start(func(batch []wheel.Due) {
			s.receive(batch)
			if batch[0].ID == "0" {
				time.Sleep(5 * time.Second)
			}
		})
		for i := range int64(100) {
			w.Schedule(fmt.Sprint(i), start+100*i)
		}
		time.Sleep(20 * time.Second)
		hits := s.hits()
		require.Len(t, hits, 100)
		for _, h := range hits {
			require.GreaterOrEqual(t, h.atMS, h.DueMS)
			require.LessOrEqual(t, h.atMS, max(h.DueMS, start+5*second)+1)
		}
		w.Stop()
	}},
}

package wheeltest

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/wheel"
)

// moving is schedule, move and cancel of one id.
var moving = []conformance{
	{name: "the last due time wins", test: func(t *testing.T, s *setup) {
		w, start := s.start(t), s.nowMS() // case 27
		for i := range 1000 {
			w.Schedule("a", start+int64(1+i*7919%1000)*1000)
		}
		w.Schedule("a", start+500)
		require.Equal(t, 1, w.Len())
		time.Sleep(time.Hour)
		require.Len(t, s.hits(), 1)
		require.Equal(t, start+500, s.hits()[0].DueMS)
		requireOnTime(t, s.hits())
	}},
	{name: "a move to a later time leaves nothing behind", test: func(t *testing.T, s *setup) {
		w, start := s.start(t), s.nowMS()
		w.Schedule("a", start+10)
		w.Schedule("a", start+hour)
		time.Sleep(time.Minute)
		require.Empty(t, s.hits())
		time.Sleep(time.Hour)
		require.Len(t, s.hits(), 1)
		requireOnTime(t, s.hits())
	}},
	{name: "a moved id can be cancelled after its first due time", test: func(t *testing.T, s *setup) {
		w, start := s.start(t), s.nowMS() // case 17
		w.Schedule("a", start+8*second)
		time.Sleep(6 * time.Second)
		w.Schedule("a", start+13*second)
		time.Sleep(3 * time.Second)
		require.True(t, w.Cancel("a"))
		require.False(t, w.Cancel("a"))
		time.Sleep(time.Minute)
		require.Empty(t, s.hits())
	}},
	{name: "a cancelled id is not handed over", test: func(t *testing.T, s *setup) {
		w, start := s.start(t), s.nowMS()
		for i := range 1000 {
			w.Schedule(fmt.Sprint(i), start+second+int64(i))
		}
		for i := 1; i < 1000; i += 2 {
			require.True(t, w.Cancel(fmt.Sprint(i)))
		}
		require.Equal(t, 500, w.Len())
		time.Sleep(3 * time.Second)
		require.Len(t, s.hits(), 500)
	}},
	{name: "Cancel is false for what was handed over, cancelled or never armed", test: func(t *testing.T, s *setup) {
		w := s.start(t)
		require.False(t, w.Cancel("never"))
		w.Schedule("fired", s.nowMS())
		w.Schedule("cancelled", s.nowMS()+hour)
		require.Len(t, s.hits(), 1)
		require.False(t, w.Cancel("fired"))
		require.True(t, w.Cancel("cancelled"))
		require.False(t, w.Cancel("cancelled"))
	}},
	{name: "an id can be armed again after a cancel and after its hand-over", test: func(t *testing.T, s *setup) {
		w, start := s.start(t), s.nowMS() // case 114
		w.Schedule("a", start+second)
		require.True(t, w.Cancel("a"))
		w.Schedule("a", start+2*second)
		time.Sleep(3 * time.Second)
		w.Schedule("a", start+4*second)
		time.Sleep(3 * time.Second)
		require.Len(t, s.hits(), 2)
		requireOnTime(t, s.hits())
	}},
	{name: "any string is an id", test: func(t *testing.T, s *setup) {
		w := s.start(t)
		ids := []string{"", " ", "\x00", "\xff\xfe", "a", "a\x00", strings.Repeat("x", 100_000), "订单"}
		for _, id := range ids {
			w.Schedule(id, s.nowMS()+hour)
		}
		require.Equal(t, len(ids), w.Len())
		for _, id := range ids {
			require.True(t, w.Cancel(strings.Clone(id)), "%.20q", id)
		}
	}},
	{name: "fire may call every method but Stop", test: func(t *testing.T, s *setup) {
		w := s.fresh() // case 28
		runs := make(chan string, 100)
		w.Start(func(batch []wheel.Due) {
			for _, d := range batch {
				runs <- d.ID
				if len(runs) < 5 {
					w.Schedule(d.ID, s.nowMS()+10)
					w.Schedule("other", s.nowMS()+hour)
					w.Cancel("other")
				}
				w.Len()
				w.NextDue()
			}
		})
		w.Schedule("a", s.nowMS()+10)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Len(t, runs, 5)
		w.Stop()
	}},
}

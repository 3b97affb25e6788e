package wheeltest

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/wheel"
)

// stopping is Start and Stop.
var stopping = []conformance{
	{name: "before Start it only arms", test: func(t *testing.T, s *setup) {
		w := s.fresh()
		w.Schedule("past", s.nowMS()-1)
		w.Schedule("soon", s.nowMS()+10)
		w.Schedule("cancelled", s.nowMS()+10)
		require.True(t, w.Cancel("cancelled"))
		time.Sleep(time.Second)
		require.Empty(t, s.hits())
		require.Equal(t, 2, w.Len())
		w.Start(s.receive)
		require.Equal(t, []string{"past", "soon"}, s.ids())
		w.Stop()
	}},
	{name: "a second Start panics", test: func(t *testing.T, s *setup) {
		w := s.start(t)
		require.Panics(t, func() { w.Start(s.receive) })
	}},
	{name: "Start after Stop does nothing", test: func(t *testing.T, s *setup) {
		w := s.fresh() // case 122
		w.Stop()
		w.Start(s.receive)
		w.Schedule("a", s.nowMS())
		require.Empty(t, s.hits())
		w.Stop()

		w = s.start(t)
		w.Stop()
		w.Start(s.receive)
	}},
	{name: "after Stop nothing is armed and nothing fires", test: func(t *testing.T, s *setup) {
		w := s.start(t)
		w.Schedule("a", s.nowMS()+second)
		w.Stop()
		w.Stop()
		require.Zero(t, w.Len())
		w.Schedule("b", s.nowMS())
		w.Schedule("b", s.nowMS()+second)
		require.False(t, w.Cancel("a"))
		require.False(t, w.Cancel("b"))
		require.Zero(t, w.Len())
		_, ok := w.NextDue()
		require.False(t, ok)
		time.Sleep(time.Minute)
		require.Empty(t, s.hits())
	}},
	{name: "a new engine fires what a stopped one had", test: func(t *testing.T, s *setup) {
		old := s.start(t) // case 18
		old.Schedule("a", s.nowMS()+second)
		old.Stop()
		w := s.start(t)
		w.Schedule("a", s.nowMS()+second)
		time.Sleep(2 * time.Second)
		require.Len(t, s.hits(), 1)
	}},
	{name: "Stop waits for fire, also the second Stop", test: func(t *testing.T, s *setup) {
		w := s.fresh()
		var over atomic.Bool
		w.Start(func([]wheel.Due) {
			time.Sleep(10 * time.Second)
			over.Store(true)
		})
		w.Schedule("a", s.nowMS())
		synctest.Wait()
		go w.Stop()
		w.Stop()
		require.True(t, over.Load())
	}},
	{name: "Stop leaves no goroutine", test: func(t *testing.T, s *setup) {
		// A bubble fails the test when a goroutine stays.
		for range 100 {
			w := s.fresh()
			w.Start(s.receive)
			for _, id := range []string{"a", "b", "c"} {
				w.Schedule(id, s.nowMS()+2)
				w.Schedule(id+id, s.nowMS()+hour)
			}
			w.Stop()
		}
	}},
}

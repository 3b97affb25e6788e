package bench

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/RussellLuo/timingwheel"
	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/wheel"
)

func nowMS() int64 { return time.Now().UnixMilli() }

// engines are the wheels that are measured side by side. RussellLuo's is set up as
// its own examples and benchmarks do, with 20 slots a level, and as package
// wheel/russellluo does, with 4,096, which makes its deadlock less likely.
var engines = []struct {
	name    string
	new     wheel.Factory
	variant bool // of a rival: measured at the usual size only
}{
	{"native", wheel.New, false},
	{"russellluo", newRussellLuo(20), false},
	{"russellluo4096", newRussellLuo(4096), true},
	{"stdtimer", newStdTimer, false},
}

// timers is the least that one writes around timers to cancel them by id: a map
// with a lock, and a look whether a timer that fires is still the one meant.
// Package wheel/russellluo does more, and would make the library look slower
// than it is.
type timers[T timer] struct {
	nowMS func() int64
	after func(d time.Duration, f func()) T
	stop  func()
	fire  func([]wheel.Due)

	mu struct {
		sync.Mutex
		byID map[string]T
	}
}

// timer is what both rivals give for one expiry.
type timer interface {
	comparable
	Stop() bool
}

func newTimers[T timer](nowMS func() int64, after func(time.Duration, func()) T, stop func()) wheel.Wheel {
	e := &timers[T]{nowMS: nowMS, after: after, stop: stop}
	e.mu.byID = make(map[string]T)
	return e
}

func newStdTimer(nowMS func() int64) wheel.Wheel {
	return newTimers(nowMS, time.AfterFunc, func() {})
}

func newRussellLuo(slots int64) wheel.Factory {
	return func(nowMS func() int64) wheel.Wheel {
		tw := timingwheel.NewTimingWheel(time.Millisecond, slots)
		tw.Start()
		return newTimers(nowMS, tw.AfterFunc, tw.Stop)
	}
}

func (e *timers[T]) Schedule(id string, dueMS int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if old, ok := e.mu.byID[id]; ok {
		old.Stop()
	}
	var t T
	t = e.after(time.Duration(dueMS-e.nowMS())*time.Millisecond, func() {
		e.mu.Lock()
		meant := e.mu.byID[id] == t
		if meant {
			delete(e.mu.byID, id)
		}
		e.mu.Unlock()
		if meant {
			e.fire([]wheel.Due{{ID: id, DueMS: dueMS}})
		}
	})
	e.mu.byID[id] = t
}

func (e *timers[T]) Cancel(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	t, ok := e.mu.byID[id]
	if ok {
		delete(e.mu.byID, id)
		t.Stop()
	}
	return ok
}

func (e *timers[T]) Len() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.mu.byID)
}

func (e *timers[T]) NextDue() (int64, bool)       { panic("not measured") }
func (e *timers[T]) Start(fire func([]wheel.Due)) { e.fire = fire }

func (e *timers[T]) Stop() {
	e.stop()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, t := range e.mu.byID {
		t.Stop()
	}
	e.mu.byID = nil
}

// What is measured must do the job.
func TestTheRivalsFireAndCancel(t *testing.T) {
	t.Parallel()
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				fired := make(chan string, 10)
				w := e.new(nowMS)
				w.Start(func(batch []wheel.Due) {
					for _, d := range batch {
						fired <- d.ID
					}
				})
				w.Schedule("moved", nowMS()+10)
				w.Schedule("moved", nowMS()+3600_000)
				w.Schedule("cancelled", nowMS()+20)
				require.True(t, w.Cancel("cancelled"))
				require.False(t, w.Cancel("cancelled"))
				w.Schedule("fires", nowMS()+40)
				require.Equal(t, "fires", <-fired)
				require.Equal(t, 1, w.Len())
				w.Stop()
				time.Sleep(2 * time.Hour)
				require.Empty(t, fired)
			})
		})
	}
}

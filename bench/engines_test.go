package bench

import (
	"sync"
	"testing"
	"time"

	"github.com/RussellLuo/timingwheel"
	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/wheel"
)

func nowMS() int64 { return time.Now().UnixMilli() }

// engines are the wheels that are measured side by side.
var engines = []struct {
	name string
	new  wheel.Factory
}{
	{"native", wheel.New},
	{"russellluo", newRussellLuo},
	{"stdtimer", newStdTimer},
}

// timer is what both rivals give for one expiry.
type timer interface{ Stop() bool }

// timers is the least that one writes around timers to cancel them by id: a map
// with a lock, and a look whether a timer that fires is still the one meant.
// Package wheel/russellluo does more, and would make the library look slower
// than it is.
type timers struct {
	nowMS func() int64
	after func(d time.Duration, f func()) timer
	stop  func()
	fire  func([]wheel.Due)

	mu struct {
		sync.Mutex
		byID map[string]timer
	}
}

func newStdTimer(nowMS func() int64) wheel.Wheel {
	e := &timers{nowMS: nowMS, stop: func() {}}
	e.after = func(d time.Duration, f func()) timer { return time.AfterFunc(d, f) }
	e.mu.byID = make(map[string]timer)
	return e
}

// newRussellLuo sets the library up as its own examples and benchmarks do, with
// 20 slots a level. Package wheel/russellluo takes 4,096, to make the
// library's deadlock less likely: that makes it half as late under a steady rate,
// and no faster otherwise.
func newRussellLuo(nowMS func() int64) wheel.Wheel {
	tw := timingwheel.NewTimingWheel(time.Millisecond, 20)
	tw.Start()
	e := &timers{nowMS: nowMS, stop: tw.Stop}
	e.after = func(d time.Duration, f func()) timer { return tw.AfterFunc(d, f) }
	e.mu.byID = make(map[string]timer)
	return e
}

func (e *timers) Schedule(id string, dueMS int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if old, ok := e.mu.byID[id]; ok {
		old.Stop()
	}
	var t timer
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

func (e *timers) Cancel(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	t, ok := e.mu.byID[id]
	if ok {
		delete(e.mu.byID, id)
		t.Stop()
	}
	return ok
}

func (e *timers) Len() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.mu.byID)
}

func (e *timers) NextDue() (int64, bool)       { panic("not measured") }
func (e *timers) Start(fire func([]wheel.Due)) { e.fire = fire }

func (e *timers) Stop() {
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
			fired := make(chan string, 10)
			w := e.new(nowMS)
			w.Start(func(batch []wheel.Due) {
				for _, d := range batch {
					fired <- d.ID
				}
			})
			w.Schedule("moved", nowMS()+1)
			w.Schedule("moved", nowMS()+3600_000)
			w.Schedule("cancelled", nowMS()+20)
			require.True(t, w.Cancel("cancelled"))
			w.Schedule("fires", nowMS()+40)
			require.Equal(t, "fires", <-fired)
			require.Equal(t, 1, w.Len())
			w.Stop()
			require.Empty(t, fired)
		})
	}
}

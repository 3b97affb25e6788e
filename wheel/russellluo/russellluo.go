package russellluo

import (
	"sync"
	"time"

	"github.com/RussellLuo/timingwheel"

	"github.com/orderwheel/orderwheel/wheel"
)

const (
	tick      = time.Millisecond    // the contract's unit: a coarser tick would only add lateness
	wheelSize = 4096                // slots a level; see doc.go. Two levels reach 4.6 hours
	maxDelay  = 30 * 24 * time.Hour // what is further out is armed again after that
	leaveWait = time.Second         // how long Stop waits for the library's goroutines
)

// engine is a wheel.Wheel on the library.
type engine struct {
	nowMS func() int64
	lib   *timingwheel.TimingWheel
	fire  func([]wheel.Due) // set by Start, before the first timer

	arming sync.WaitGroup // calls into the library that may add a timer
	firing sync.WaitGroup // calls of fire in progress
	left   chan struct{}  // closed when the library's goroutines have left

	// mu guards what follows. It is never held while the library, nowMS or fire
	// is called: the library may hang, and the others are not ours.
	mu struct {
		sync.Mutex
		state state
		armed map[string]*entry // invariant: nil after Stop
		due   dueCounts         // of the entries in armed
	}
}

type state int

const (
	fresh state = iota
	running
	stopped
)

// entry is one Schedule of one id. A move makes a new one, so the pointer tells
// a timer whether it is still meant.
type entry struct {
	id    string
	dueMS int64
	timer *timingwheel.Timer // guarded by mu; nil while the library has not returned it
}

// New returns a wheel on github.com/RussellLuo/timingwheel. It is a
// wheel.Factory. The package documentation says what this engine cannot
// promise.
func New(nowMS func() int64) wheel.Wheel {
	e := &engine{
		nowMS: nowMS,
		lib:   timingwheel.NewTimingWheel(tick, wheelSize),
		left:  make(chan struct{}),
	}
	e.mu.armed = make(map[string]*entry)
	e.mu.due = newDueCounts()
	return e
}

// Schedule implements wheel.Wheel.
func (e *engine) Schedule(id string, dueMS int64) {
	en := &entry{id: id, dueMS: dueMS}

	e.mu.Lock()
	if e.mu.state == stopped {
		e.mu.Unlock()
		return
	}
	old := e.removeLocked(id)
	e.mu.armed[id] = en
	e.mu.due.add(dueMS)
	start := e.mu.state == running
	if start {
		e.arming.Add(1) // under mu, so that Stop sees it
	}
	e.mu.Unlock()

	if old != nil {
		old.Stop()
	}
	if start {
		e.arm(en)
	}
}

// Cancel implements wheel.Wheel.
func (e *engine) Cancel(id string) bool {
	e.mu.Lock()
	_, ok := e.mu.armed[id]
	old := e.removeLocked(id)
	e.mu.Unlock()

	if old != nil {
		old.Stop()
	}
	return ok
}

// removeLocked forgets id and returns the timer to stop, if there is one. Once
// it is forgotten a timer of its does nothing, so stopping only gives memory
// back.
func (e *engine) removeLocked(id string) *timingwheel.Timer {
	en, ok := e.mu.armed[id]
	if !ok {
		return nil
	}
	delete(e.mu.armed, id)
	e.mu.due.remove(en.dueMS)
	return en.timer
}

// arm gives en a timer. The caller has added 1 to arming while the state was
// running.
func (e *engine) arm(en *entry) {
	defer e.arming.Done()
	timer := e.lib.AfterFunc(delay(e.nowMS(), en.dueMS), func() { e.expired(en) })

	e.mu.Lock()
	meant := e.mu.armed[en.id] == en
	if meant {
		en.timer = timer
	}
	e.mu.Unlock()

	if !meant { // moved, cancelled, fired or stopped meanwhile
		timer.Stop()
	}
}

// expired is called by a timer of en, in a goroutine of the library's.
func (e *engine) expired(en *entry) {
	now := e.nowMS()

	e.mu.Lock()
	if e.mu.armed[en.id] != en { // nil after Stop
		e.mu.Unlock()
		return
	}
	if now < en.dueMS {
		e.arming.Add(1)
		e.mu.Unlock()
		e.arm(en)
		return
	}
	e.removeLocked(en.id)
	e.firing.Add(1) // under mu, so that Stop sees it
	e.mu.Unlock()

	defer e.firing.Done()
	e.fire([]wheel.Due{{ID: en.id, DueMS: en.dueMS}})
}

// delay is the time from now until due, cut to what the library's arithmetic
// holds.
func delay(nowMS, dueMS int64) time.Duration {
	if dueMS <= nowMS {
		return 0
	}
	d := uint64(dueMS) - uint64(nowMS) // exact also where the signed difference overflows
	if d >= uint64(maxDelay/time.Millisecond) {
		return maxDelay
	}
	return time.Duration(d) * time.Millisecond
}

// Len implements wheel.Wheel.
func (e *engine) Len() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.mu.armed)
}

// NextDue implements wheel.Wheel with a lower bound, at most 1,024 ms below the
// earliest due time.
func (e *engine) NextDue() (dueMS int64, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.mu.due.min()
}

// Start implements wheel.Wheel.
func (e *engine) Start(fire func([]wheel.Due)) {
	e.mu.Lock()
	switch e.mu.state {
	case running:
		e.mu.Unlock()
		panic("russellluo: Start called twice")
	case stopped:
		e.mu.Unlock()
		return
	}
	e.mu.state = running
	e.fire = fire
	waiting := make([]*entry, 0, len(e.mu.armed))
	for _, en := range e.mu.armed {
		waiting = append(waiting, en)
	}
	e.arming.Add(len(waiting) + 1)
	e.mu.Unlock()

	e.lib.Start()
	for _, en := range waiting {
		e.arm(en)
	}
	e.arming.Done()
}

// Stop implements wheel.Wheel.
func (e *engine) Stop() {
	e.mu.Lock()
	before := e.mu.state
	e.mu.state = stopped
	e.mu.armed = nil
	e.mu.due = newDueCounts()
	e.mu.Unlock()

	switch before {
	case fresh:
		close(e.left)
	case running:
		go e.leave()
	}
	e.firing.Wait()

	wait := time.NewTimer(leaveWait)
	defer wait.Stop()
	select {
	case <-e.left:
	case <-wait.C: // hung: see doc.go
	}
}

// leave stops the library. Its goroutines must not leave while one of ours adds
// a timer, which would wait for them for ever.
func (e *engine) leave() {
	e.arming.Wait()
	e.lib.Stop()
	close(e.left)
}

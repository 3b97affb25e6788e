package recovery

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/orderwheel/orderwheel/internal/arming"
	"github.com/orderwheel/orderwheel/wheel"
)

const (
	// lookEvery is how often the wheel is looked at. Standstill is counted in looks,
	// not in time, so that a process that was held up does not blame its wheel.
	lookEvery = 250 * time.Millisecond
	// lateMS is how far the earliest due time may lie in the past. A wheel may name one
	// that is a second too early, where it knows no better.
	lateMS = 2000
	// steppedBackMS: a wheel stands still until its clock has caught up. With a clock
	// that steps back by more, another wheel is the sooner way.
	steppedBackMS = 2000
	// replaceEvery is the pause after a wheel was replaced.
	replaceEvery = 10 * time.Second
	// maxHanging bounds the wheels that were replaced and do not stop.
	maxHanging = 8
)

// sighting is what one look at the wheel shows.
type sighting struct {
	arming.Progress
	nextMS   int64 // its earliest due time, as far as it is known; MaxInt64: none
	nowMS    int64
	awaiting bool // it has not answered the last question
}

// judge tells from several sightings whether a wheel stands still. It knows no clock and
// no lock.
type judge struct {
	patience int // so many looks condemn it
	last     *sighting
	highMS   int64 // the latest nowMS

	// Looks, in a row, at which nothing was carried, no answer came, and the same due
	// time was late; and those since the wheel was late first and has not fired.
	queue, silent, next, late int
}

// newJudge is for a wheel that was made at nowMS or before.
func newJudge(sweepEvery time.Duration, nowMS int64) judge {
	bound := max(time.Second, 2*sweepEvery)
	return judge{patience: int((bound + lookEvery - 1) / lookEvery), highMS: nowMS}
}

// see takes a sighting in. The reason is empty as long as the wheel is well.
func (j *judge) see(s sighting) (reason string) {
	last := j.last
	j.last = &s
	if s.nowMS < j.highMS-steppedBackMS {
		return fmt.Sprintf("the store's clock has stepped back by %v", time.Duration(j.highMS-s.nowMS)*time.Millisecond)
	}
	j.highMS = max(j.highMS, s.nowMS)
	if last == nil {
		return ""
	}
	late := s.nextMS < s.nowMS-lateMS
	// What the sweep finds late it takes out of the wheel, so that nothing is late there
	// for long. So that counts as well.
	failing := late || s.Missed != last.Missed
	inARow(&j.queue, s.Waiting > 0 && s.Carried == last.Carried)
	inARow(&j.silent, s.awaiting)
	inARow(&j.next, late && s.nextMS == last.nextMS)
	if s.Fired != last.Fired {
		j.late = 0
	} else if failing || j.late > 0 {
		j.late++
	}
	switch {
	case j.queue >= j.patience:
		return "it does not take what is to be armed"
	case j.silent >= j.patience:
		return "it does not answer"
	case failing && j.late >= j.patience, j.next >= 2*j.patience:
		return "what is due does not leave it"
	}
	return ""
}

func inARow(n *int, yes bool) {
	if *n++; !yes {
		*n = 0
	}
}

// watch is the state of the watchdog.
type watch struct {
	judge judge
	asked *probe // the last question; the watch loop's own

	hanging atomic.Int64 // wheels that were replaced and have not stopped

	replaced time.Time // the last time; the watch loop's own

	mu struct {
		sync.Mutex
		reason string // why the wheel stands still, or did, until the next one is rebuilt; empty: it does not
		state  standstill
	}
}

// standstill is what is done about a wheel that stands still.
type standstill int

const (
	waits    standstill = iota // another was replaced just now
	capped                     // too many hang
	replaced                   // the new one is being rebuilt
)

// probe asks a wheel for its earliest due time. A wheel may hang in it.
type probe struct {
	wheel  wheel.Wheel
	nextMS atomic.Int64
	done   atomic.Bool
}

func newProbe(w wheel.Wheel) *probe {
	p := &probe{wheel: w}
	p.nextMS.Store(math.MaxInt64)
	go func() {
		if ms, ok := w.NextDue(); ok {
			p.nextMS.Store(ms)
		}
		p.done.Store(true)
	}()
	return p
}

// look looks at the wheel once, and replaces it where it stands still.
func (r *Recovery) look(context.Context) error {
	w := &r.watch
	s := sighting{Progress: r.cfg.Board.Progress(), nextMS: math.MaxInt64, nowMS: r.cfg.Clock.NowMS()}
	if w.asked != nil {
		s.awaiting = !w.asked.done.Load()
		s.nextMS = w.asked.nextMS.Load()
	}
	if !s.awaiting {
		w.asked = newProbe(r.cfg.Board.Wheel())
	}
	reason := w.judge.see(s)
	switch {
	case reason == "":
		w.well()
	case w.hanging.Load() >= maxHanging:
		w.set(reason, capped)
	case !w.replaced.IsZero() && time.Since(w.replaced) < replaceEvery:
		w.set(reason, waits)
	default:
		r.replaceWheel(reason)
	}
	return nil
}

// replaceWheel puts a new wheel in the place of the one that stands still, which is left
// alone, and has the new one rebuilt by the pager.
func (r *Recovery) replaceWheel(reason string) {
	w := &r.watch
	old, ok := r.cfg.Board.Replace(r.cfg.NewWheel())
	if !ok {
		return // the engine stops
	}
	r.stats.replaced.Add(1)
	r.cfg.Logger.Error("wheel_replaced", slog.String("reason", reason), slog.Int64("hanging", w.hanging.Load()))
	w.hanging.Add(1)
	go func() {
		defer w.hanging.Add(-1)
		_ = guarded(func() error { old.Stop(); return nil })
	}()
	w.asked, w.judge, w.replaced = nil, newJudge(r.cfg.SweepEvery, r.cfg.Clock.NowMS()), time.Now()
	w.set(reason, replaced)
	r.readAgain()
}

func (w *watch) set(reason string, s standstill) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.reason, w.mu.state = reason, s
}

// well notes that the wheel goes. One that was replaced may not have all yet.
func (w *watch) well() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.state != replaced {
		w.mu.reason = ""
	}
}

// rebuilt notes that the wheel in use has all that it should.
func (w *watch) rebuilt() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.state == replaced {
		w.mu.reason, w.mu.state = "", waits
	}
}

func (w *watch) problem() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.mu.reason == "":
		return ""
	case w.mu.state == replaced:
		return fmt.Sprintf("the wheel stood still (%s), and the new one is being rebuilt", w.mu.reason)
	case w.mu.state == capped:
		return fmt.Sprintf("the wheel stands still (%s), and %d before it hang, so it is not replaced: "+
			"what is due is found late by the sweep", w.mu.reason, maxHanging)
	}
	return fmt.Sprintf("the wheel stands still (%s), so soon after another that it is not replaced yet: "+
		"what is due is found late by the sweep", w.mu.reason)
}

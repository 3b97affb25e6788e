// Package fires has ids fire at a steady rate and measures how late they do. What
// fires them is the caller's: the engine, or a rival. All get the same ids and the
// same due times, all armed before the first is due.
package fires

import (
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/bench/internal/lateness"
)

const (
	// settles is how long the last armed id is ahead of the first that is due.
	settles = 2 * time.Second
	// drainsWithin bounds a hang: how long one that does not keep up may go on after
	// the last id was due.
	drainsWithin = 5 * time.Minute
	// idBase makes ids as long as order numbers are.
	idBase = 2026_093012345600000
)

// Load is what is to fire: Rate ids a second, for so many seconds.
type Load struct{ Rate, Seconds int }

func (l Load) size() int { return l.Rate * l.Seconds }

// Subject fires ids, and calls fired, from any goroutine, for each.
type Subject struct {
	// Arm has id fire at due. It is called by Armers goroutines at once.
	Arm    func(id string, due time.Time) error
	Armers int
	// ArmsPerSecond is how many can certainly be armed in a second, on a machine
	// that has other things to do.
	ArmsPerSecond int
	// Stop ends it, when all have fired.
	Stop func()
}

// Measure starts a subject, has it fire the load, and reports how late it was:
// late-p50-ms, late-p99-ms, late-max-ms, what a canary had beside it, early (how many
// fired before their time, by the clock of this machine, which is the server's too),
// and goroutines-peak: the most that ran at once beyond those before the start.
func Measure(b *testing.B, load Load, start func(fired func(id string)) Subject) {
	before := runtime.NumGoroutine()
	run := newRun(load)
	s := start(run.fired)
	defer s.Stop()
	run.first = time.UnixMilli(time.Now().Add(settles + time.Duration(load.size())*time.Second/time.Duration(s.ArmsPerSecond)).UnixMilli())
	if err := run.arm(s); err != nil {
		b.Fatal(err)
	}
	if !time.Now().Before(run.first) {
		b.Fatalf("it took too long to arm them: fewer than %d a second", s.ArmsPerSecond)
	}
	runtime.GC()
	time.Sleep(time.Until(run.first))
	watch := lateness.StartWatch()
	all := run.wait()
	watch.Stop()
	if !all {
		b.Fatalf("%d of %d have not fired %v after the last was due", run.left.Load(), load.size(), drainsWithin)
	}
	watch.Report(b, &run.late)
	b.ReportMetric(float64(watch.Peak-before), "goroutines-peak")
	b.ReportMetric(0, "ns/op") // means nothing here
}

// run is one measurement.
type run struct {
	load  Load
	first time.Time // when the first id is due; set before any is armed
	late  lateness.Counts
	once  []atomic.Bool // ids that have fired; a second time is not counted
	left  atomic.Int64
	done  chan struct{} // closed when all have fired
}

func newRun(load Load) *run {
	r := &run{load: load, once: make([]atomic.Bool, load.size()), done: make(chan struct{})}
	r.left.Store(int64(load.size()))
	return r
}

// due is when id number i is: at a whole millisecond.
func (r *run) due(i int) time.Time {
	return r.first.Add(time.Duration(i*1000/r.load.Rate) * time.Millisecond)
}

func (r *run) arm(s Subject) error {
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	for range s.Armers {
		all.Go(func() {
			for failed.Load() == nil {
				i := int(next.Add(1)) - 1
				if i >= r.load.size() {
					return
				}
				if err := s.Arm(strconv.Itoa(idBase+i), r.due(i)); err != nil {
					failed.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

func (r *run) fired(id string) {
	now := time.Now()
	i, err := strconv.Atoi(id)
	if err != nil {
		panic("fires: not an id that was armed: " + id)
	}
	i -= idBase
	if r.once[i].Swap(true) {
		return
	}
	r.late.Add(now.Sub(r.due(i)))
	if r.left.Add(-1) == 0 {
		close(r.done)
	}
}

// wait waits until all have fired; false: some never do.
func (r *run) wait() bool {
	select {
	case <-r.done:
		return true
	case <-time.After(time.Until(r.due(r.load.size()-1)) + drainsWithin):
		return false
	}
}

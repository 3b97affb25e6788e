package wheel

import (
	"math"
	"slices"
	"sync/atomic"
	"time"
)

const (
	// maxNap bounds how late the driver learns that the injected clock has
	// jumped ahead. Two short wake-ups a second cost nothing to speak of, and
	// an engine in which nothing is armed does without.
	maxNap = 500 * time.Millisecond

	awake = math.MinInt64 // of driver.wakeAtMS

	// scratchLen bounds what collect keeps for the next slot.
	scratchLen = 4096
)

// driver is the one goroutine of an engine. It asks the clock, owns the timer,
// and calls fire. It does what is due, then what can wait, then it sleeps.
type driver struct {
	nowMS  func() int64
	shards []shard

	quit chan struct{} // closed by Stop
	done chan struct{} // closed when run has returned, or will never be called
	wake chan struct{} // capacity 1

	// wakeAtMS is when the driver will look again by itself, awake while it is
	// not asleep. Who arms something sooner wakes it.
	wakeAtMS atomic.Int64

	// Only run touches these.
	seenMS int64 // the latest time that the clock has shown
	batch  []Due // scratch of collect
}

func newDriver(nowMS func() int64, shards []shard) *driver {
	d := &driver{
		nowMS:  nowMS,
		shards: shards,
		quit:   make(chan struct{}),
		done:   make(chan struct{}),
		wake:   make(chan struct{}, 1),
		seenMS: math.MinInt64,
	}
	d.wakeAtMS.Store(awake)
	return d
}

// run drives the shards until quit is closed.
func (d *driver) run(fire func([]Due)) {
	defer close(d.done)
	timer := time.NewTimer(maxNap)
	defer timer.Stop()

	for !d.quitting() {
		now := min(d.nowMS(), never-1)
		steppedBack := now < d.seenMS
		d.seenMS = max(d.seenMS, now)
		w := d.earliest()
		switch {
		case steppedBack:
			d.sleep(timer, now)
		case w.dueMS <= now:
			if batch := d.collect(w.dueMS); len(batch) > 0 {
				fire(batch)
			}
		case w.tendMS <= now:
			for i := range d.shards {
				d.shards[i].tend(now)
			}
		default:
			d.sleep(timer, now)
		}
	}
}

func (d *driver) quitting() bool {
	select {
	case <-d.quit:
		return true
	default:
		return false
	}
}

// earliest is what the shards ask for, read without locking them.
func (d *driver) earliest() wakeup {
	w := wakeup{never, never}
	for i := range d.shards {
		s := &d.shards[i]
		w = w.earlier(wakeup{s.dueMS.Load(), s.tendMS.Load()})
	}
	return w
}

// collect takes out what has expired at dueMS, the earliest time that any shard
// asks for: that is one slot.
func (d *driver) collect(dueMS int64) []Due {
	for i := range d.shards {
		d.batch = d.shards[i].advance(dueMS, d.batch)
	}
	if len(d.batch) > scratchLen {
		batch := d.batch
		d.batch = nil
		return batch
	}
	batch := slices.Clone(d.batch) // no larger than need be: the receiver keeps it
	clear(d.batch)
	d.batch = d.batch[:0]
	return batch
}

// nextLook is when there will be something to do: not before the clock has
// reached the latest time it has shown.
func (d *driver) nextLook() int64 {
	w := d.earliest()
	return max(d.seenMS, min(w.dueMS, w.tendMS))
}

// sleep returns when there is something to do, or sooner: after maxNap, or when
// the engine is stopped.
func (d *driver) sleep(timer *time.Timer, nowMS int64) {
	until := d.nextLook()
	defer d.wakeAtMS.Store(awake)
	if !d.fallAsleep(until) {
		return
	}
	var alarm <-chan time.Time
	if until != never {
		timer.Reset(nap(nowMS, until))
		alarm = timer.C
	}
	select {
	case <-alarm:
	case <-d.wake:
	case <-d.quit:
	}
}

// fallAsleep says until when the driver will sleep, unless something sooner has
// been armed: what is armed before the store cannot wake the driver, so it
// looks once more; what is armed after it does.
func (d *driver) fallAsleep(untilMS int64) bool {
	d.wakeAtMS.Store(untilMS)
	return d.nextLook() >= untilMS
}

// nap is how long to sleep at nowMS to wake at untilMS, which is later.
func nap(nowMS, untilMS int64) time.Duration {
	ms := uint64(untilMS) - uint64(nowMS) // exact where the signed difference overflows
	return time.Duration(min(ms, uint64(maxNap/time.Millisecond))) * time.Millisecond
}

// wakeBefore wakes the driver if it would sleep past atMS.
func (d *driver) wakeBefore(atMS int64) {
	until := d.wakeAtMS.Load()
	if atMS < until && d.wakeAtMS.CompareAndSwap(until, awake) {
		select {
		case d.wake <- struct{}{}:
		default: // woken already
		}
	}
}

package arming

import "github.com/orderwheel/orderwheel/wheel"

// StartWheel has the wheel hand over what expires, and any that replaces it. Call it once,
// and before Replace.
func (b *Board) StartWheel(fire func([]wheel.Due)) {
	b.fire = fire
	b.mu.Lock()
	c := b.mu.carrier
	b.mu.Unlock()
	b.startWheel(c)
}

func (b *Board) startWheel(c *carrier) {
	c.wheel.Start(func(due []wheel.Due) {
		c.fired.Add(1)
		b.fire(due)
	})
}

// Replace puts w in the place of the wheel and starts it. What the old wheel held is not
// armed in w: the caller reads it from the store again, and begins to read after
// Replace has returned. What was decided and not carried out is dropped with it: the
// answers that it was decided by stood in the store before. old is returned for the
// caller to stop. If it still fires something, that is looked at like
// everything that is fired.
//
// false: the board was stopped, and w is not used.
func (b *Board) Replace(w wheel.Wheel) (old wheel.Wheel, ok bool) {
	c := newCarrier(w)
	b.mu.Lock()
	if b.mu.stopped {
		b.mu.Unlock()
		return nil, false
	}
	was := b.mu.carrier
	b.mu.carrier = c
	b.mu.queue = nil
	b.mu.carried = b.mu.queued
	b.toldLocked()
	b.startLocked(c)
	b.mu.Unlock()
	was.wakeUp()
	b.startWheel(c)
	return was.wheel, true
}

// Wheel is the wheel in use.
func (b *Board) Wheel() wheel.Wheel {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.carrier.wheel
}

// Progress is how far the wheel has come.
type Progress struct {
	Fired   uint64 // batches that it has handed over
	Carried uint64 // decisions that it knows
	Waiting int    // decisions that it does not know yet
	Missed  uint64 // ids that the sweep found, and that it still held; of all wheels
}

// Progress tells how far the wheel has come. It does not ask the wheel, which may hang.
func (b *Board) Progress() Progress {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Progress{
		Fired: b.mu.carrier.fired.Load(), Carried: b.mu.carried,
		Waiting: int(b.mu.queued - b.mu.carried), Missed: b.missed.Load(),
	}
}

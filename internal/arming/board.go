// Package arming is the one door to the wheel. Three parties arm ids: the
// user's calls, the executor (what a claim, an ack or a retry answered) and
// recovery (what a page of the store said). Each of them acts on an answer of
// the store, and answers overtake each other: a page read a second ago may say
// that an id is due at nine, when the user has moved it to five since. Armed by
// the page, it would fire four hours late, and only the sweep would notice.
//
// So the board keeps one rule: an answer arms nothing if a user's call on that
// id was answered after the question was asked. Who asks takes a Ticket before
// the question; the user's call is always right, for the caller holds the id's
// lock across the write and the arming.
//
// What is due beyond an edge is not armed at all (edge.go), and a wheel that stands
// still is replaced (replace.go).
//
// Nobody waits for the wheel: what is to be done to it goes into a queue, in
// the order in which it was decided, and one goroutine carries it out. An
// engine of the wheel that hangs, as the RussellLuo one can, holds up that
// goroutine and nothing else: the store has every task, and the sweep finds
// what no wheel fires.
package arming

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/orderwheel/orderwheel/wheel"
)

const (
	// maxQueue bounds what waits for a wheel that hangs. What comes on top is
	// left to the sweep.
	maxQueue = 1 << 20
	// bigMap is from how many entries on an emptied map is replaced: maps do
	// not shrink.
	bigMap = 4096
)

// Board guards one wheel at a time. It is safe for concurrent use.
type Board struct {
	missed atomic.Uint64
	fire   func([]wheel.Due) // set by StartWheel

	mu struct {
		sync.Mutex
		carrier *carrier        // of the wheel in use
		edgeMS  int64           // what is due later is not armed: see edge.go
		hasEdge bool            // SetEdge was called
		overdue int             // open tickets of AskOverdue
		seq     uint64          // decisions so far
		open    []uint64        // seq at the time each open ticket was taken, oldest first
		touched map[string]mark // ids decided about while a ticket older than that is open
		order   []touch         // the same in order of seq, for pruning
		queue   []op            // decided, not yet taken by the carrier
		queued  uint64          // ops put into the queue so far
		carried uint64          // ops carried out so far
		news    chan struct{}   // closed when carried grows; nil: nobody waits
		recent  recent
		stopped bool
	}
}

type touch struct {
	id  string
	seq uint64
}

// mark is when an id was last decided about.
type mark struct {
	user  uint64 // seq of the last user's answer
	any   uint64 // seq of the last answer of either kind
	dueMS int64  // what the last user's answer said; Never: cancelled
}

// op is one thing to be done to the wheel.
type op struct {
	kind  opKind
	id    string
	dueMS int64
}

type opKind int

const (
	arm    opKind = iota
	disarm        // the user cancelled it, or it is due beyond the edge
	missed        // the sweep has found it overdue: disarm, and count it if it was armed
)

// Ticket is taken before the store is asked, and ended when the answer has been
// used.
type Ticket struct{ seq uint64 }

// carrier is who carries decisions to one wheel.
type carrier struct {
	wheel wheel.Wheel
	wake  chan struct{} // capacity 1: the queue is not empty, or the board is stopping
	done  chan struct{} // closed when it has ended; nil before Start
	fired atomic.Uint64 // batches that the wheel has handed over
}

func newCarrier(w wheel.Wheel) *carrier { return &carrier{wheel: w, wake: make(chan struct{}, 1)} }

// New makes a board for w; it starts nothing.
func New(w wheel.Wheel) *Board {
	b := new(Board)
	b.mu.carrier, b.mu.edgeMS = newCarrier(w), math.MaxInt64
	b.mu.touched = make(map[string]mark)
	return b
}

// Start begins to carry decisions to the wheel. Call it once.
func (b *Board) Start() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.startLocked(b.mu.carrier)
}

func (b *Board) startLocked(c *carrier) {
	c.done = make(chan struct{})
	go func() {
		defer close(c.done)
		b.carry(c)
	}()
}

// Stop ends the carrying, and waits for it until ctx ends: only a wheel that
// hangs takes so long. It is safe twice and before Start.
func (b *Board) Stop(ctx context.Context) error {
	b.mu.Lock()
	b.mu.stopped = true
	b.mu.queue = nil
	b.toldLocked()
	c := b.mu.carrier
	done := c.done
	b.mu.Unlock()
	c.wakeUp()
	if done == nil {
		return nil
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Ask takes a ticket. Every ticket must be ended.
func (b *Board) Ask() Ticket {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.open = append(b.mu.open, b.mu.seq)
	return Ticket{b.mu.seq}
}

// End gives the ticket back and forgets the decisions that no open ticket can
// be older than.
func (b *Board) End(t Ticket) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.mu.open, t.seq)
	b.mu.open = slices.Delete(b.mu.open, i, i+1)
	if len(b.mu.open) == 0 {
		if len(b.mu.touched) > bigMap {
			b.mu.touched, b.mu.order = make(map[string]mark), nil
		}
		clear(b.mu.touched)
		b.mu.order = b.mu.order[:0]
		return
	}
	n := 0
	for n < len(b.mu.order) && b.mu.order[n].seq <= b.mu.open[0] {
		if o := b.mu.order[n]; b.mu.touched[o.id].any == o.seq {
			delete(b.mu.touched, o.id)
		}
		n++
	}
	b.mu.order = slices.Delete(b.mu.order, 0, n)
}

// Arm arms id as the answer to t's question says. It reports false, and does
// nothing, where a user's call was answered since.
func (b *Board) Arm(t Ticket, id string, dueMS int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.touched[id].user > t.seq {
		return false
	}
	b.touchLocked(id, nobody)
	b.armLocked(id, dueMS)
	return true
}

// Missed disarms id, which the answer to t's question says is overdue, and
// counts it if the wheel still held it. What was armed since, by whomever, is
// left alone.
func (b *Board) Missed(t Ticket, id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.touched[id].any <= t.seq {
		b.addLocked(op{kind: missed, id: id})
	}
}

// UserScheduled arms id as the user's call has just been answered. The executor calls it, and
// UserCancelled, under its mutex; the board calls nobody under its own.
func (b *Board) UserScheduled(id string, dueMS int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.touchLocked(id, dueMS)
	b.armLocked(id, dueMS)
}

// UserCancelled disarms id as the user's call has just been answered.
func (b *Board) UserCancelled(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.touchLocked(id, Never)
	b.addLocked(op{kind: disarm, id: id})
}

// nobody is the due time of an answer that is no user's.
const nobody = -1

func (b *Board) touchLocked(id string, userDueMS int64) {
	b.mu.seq++
	if userDueMS != nobody {
		b.mu.recent.note(id, userDueMS)
	}
	if len(b.mu.open) == 0 {
		return // nobody has asked: there is no answer that could be late
	}
	m := b.mu.touched[id]
	m.any = b.mu.seq
	if userDueMS != nobody {
		m.user, m.dueMS = b.mu.seq, userDueMS
	}
	b.mu.touched[id] = m
	b.mu.order = append(b.mu.order, touch{id, b.mu.seq})
}

func (b *Board) addLocked(o op) {
	if b.mu.stopped || len(b.mu.queue) >= maxQueue {
		return
	}
	b.mu.queue = append(b.mu.queue, o)
	b.mu.queued++
	b.mu.carrier.wakeUp()
}

func (c *carrier) wakeUp() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// carry does to the wheel of c what was decided, in that order, until the board stops
// or has another wheel.
func (b *Board) carry(c *carrier) {
	var batch []op
	for range c.wake {
		for {
			b.mu.Lock()
			if b.mu.stopped || b.mu.carrier != c {
				b.mu.Unlock()
				return
			}
			batch, b.mu.queue = b.mu.queue, batch[:0]
			b.mu.Unlock()
			if len(batch) == 0 {
				break
			}
			for _, o := range batch {
				b.apply(c.wheel, o)
			}
			b.told(c, len(batch))
			clear(batch) // the ids are the wheel's now
			if cap(batch) > bigMap {
				batch = nil
			}
		}
	}
}

// told notes that the wheel of c knows n decisions more.
func (b *Board) told(c *carrier, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.carrier != c {
		return // they were counted when it was replaced
	}
	b.mu.carried += uint64(n)
	b.toldLocked()
}

func (b *Board) toldLocked() {
	if b.mu.news != nil {
		close(b.mu.news)
		b.mu.news = nil
	}
}

func (b *Board) apply(w wheel.Wheel, o op) {
	switch o.kind {
	case arm:
		w.Schedule(o.id, o.dueMS)
	case disarm:
		w.Cancel(o.id)
	case missed:
		if w.Cancel(o.id) {
			b.missed.Add(1)
		}
	}
}

// Drain waits until the wheel knows all that was decided before, or until ctx ends.
func (b *Board) Drain(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for target := b.mu.queued; b.mu.carried < target && !b.mu.stopped; {
		if b.mu.news == nil {
			b.mu.news = make(chan struct{})
		}
		news := b.mu.news
		b.mu.Unlock()
		var err error
		select {
		case <-news:
		case <-ctx.Done():
			err = ctx.Err()
		}
		b.mu.Lock()
		if err != nil {
			return err
		}
	}
	return nil
}

// Waiting is how much was decided that the wheel does not know yet. It stays
// above zero only while the wheel hangs.
func (b *Board) Waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return int(b.mu.queued - b.mu.carried)
}

// MissedCount is how many ids the sweep found that the wheel still held.
func (b *Board) MissedCount() uint64 { return b.missed.Load() }

// Armed is the number of armed ids.
func (b *Board) Armed() int { return b.Wheel().Len() }

// Package arming is the one door to the wheel. Three parties arm ids: the user's
// calls, the executor (what a claim, an ack or a retry answered) and recovery (what
// a page of the store said). Each of them acts on an answer of the store, and
// answers overtake each other: a page read a second ago may say that an id is due
// at nine, when the user has moved it to five since. Armed by the page, it would
// fire four hours late, and only the sweep would notice.
//
// So the board keeps one rule: an answer arms nothing if a user's call on that id
// was answered after the question was asked. Who asks takes a Ticket before the
// question; the user's call is always right, for the caller holds the id's lock
// across the write and the arming.
package arming

import (
	"slices"
	"sync"

	"github.com/orderwheel/orderwheel/wheel"
)

// Board guards one wheel. It is safe for concurrent use.
type Board struct {
	wheel wheel.Wheel

	mu struct {
		sync.Mutex
		seq     uint64            // user answers so far
		open    []uint64          // seq at the time each open ticket was taken, oldest first
		touched map[string]uint64 // id -> seq of its last user answer, if a ticket older than that is open
		order   []touch           // the same in order of seq, for pruning
	}
}

type touch struct {
	id  string
	seq uint64
}

// Ticket is taken before the store is asked, and ended when the answer has been
// used.
type Ticket struct{ seq uint64 }

// New makes a board for w.
func New(w wheel.Wheel) *Board {
	b := &Board{wheel: w}
	b.mu.touched = make(map[string]uint64)
	return b
}

// Ask takes a ticket. Every ticket must be ended.
func (b *Board) Ask() Ticket {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.open = append(b.mu.open, b.mu.seq)
	return Ticket{b.mu.seq}
}

// End gives the ticket back and forgets the user answers that no open ticket can be
// older than.
func (b *Board) End(t Ticket) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.mu.open, t.seq)
	b.mu.open = slices.Delete(b.mu.open, i, i+1)
	if len(b.mu.open) == 0 {
		clear(b.mu.touched)
		b.mu.order = b.mu.order[:0]
		return
	}
	n := 0
	for n < len(b.mu.order) && b.mu.order[n].seq <= b.mu.open[0] {
		if o := b.mu.order[n]; b.mu.touched[o.id] == o.seq {
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
	if b.mu.touched[id] > t.seq {
		return false
	}
	b.wheel.Schedule(id, dueMS)
	return true
}

// Missed reports whether the wheel still holds id, which the answer to t's question
// says is overdue, and disarms it. A user's call since then makes it false.
func (b *Board) Missed(t Ticket, id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.touched[id] <= t.seq && b.wheel.Cancel(id)
}

// UserScheduled arms id as the user's call has just been answered.
func (b *Board) UserScheduled(id string, dueMS int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.touchLocked(id)
	b.wheel.Schedule(id, dueMS)
}

// UserCancelled disarms id as the user's call has just been answered.
func (b *Board) UserCancelled(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.touchLocked(id)
	b.wheel.Cancel(id)
}

func (b *Board) touchLocked(id string) {
	b.mu.seq++
	if len(b.mu.open) == 0 {
		return // nobody has asked: there is no answer that could be late
	}
	b.mu.touched[id] = b.mu.seq
	b.mu.order = append(b.mu.order, touch{id, b.mu.seq})
}

// Len is the number of armed ids.
func (b *Board) Len() int { return b.wheel.Len() }

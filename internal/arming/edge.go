package arming

import (
	"slices"

	"github.com/orderwheel/orderwheel/wheel"
)

// The wheel holds what is due up to the edge, and the store alone what is due later.
// Recovery moves the edge ahead and then reads, from the store, what is due up to it.
//
// What must hold: no id falls between. Take any answer of the store that says an id is due at
// d, and the decision here about it, which comes after the answer was made.
//
//   - The decision comes after the edge has passed d: it arms the id.
//   - It comes before: then the write that was answered stood in the store before
//     the edge moved, so before the reading began, and the reading finds it; unless
//     another write has changed it meanwhile, which has a decision of its own.
//
// So the edge moves first, and the reading begins after. A decision about an id beyond
// the edge disarms it: it may have been near before.

// SetEdge moves the edge ahead to edgeMS, Unix milliseconds; never back. Before the first
// call there is none, and all is armed.
func (b *Board) SetEdge(edgeMS int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.hasEdge {
		edgeMS = max(edgeMS, b.mu.edgeMS)
	}
	b.mu.edgeMS, b.mu.hasEdge = edgeMS, true
}

// Edge is the due time up to which ids are armed.
func (b *Board) Edge() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.edgeMS
}

func (b *Board) armLocked(id string, dueMS int64) {
	if dueMS > b.mu.edgeMS {
		b.addLocked(op{kind: disarm, id: id})
		return
	}
	b.addLocked(op{arm, id, dueMS})
}

// ArmAll is Arm for what a page of the store said, of whatever package's type.
func ArmAll[Due ~struct {
	ID    string
	DueMS int64
}](b *Board, t Ticket, due []Due) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.queue = slices.Grow(b.mu.queue, len(due))
	for _, d := range due {
		d := wheel.Due(d)
		if b.mu.touched[d.ID].user > t.seq {
			continue
		}
		if b.mu.overdue > 0 {
			b.touchLocked(d.ID, nobody)
		}
		b.armLocked(d.ID, d.DueMS)
	}
}

// AskOverdue is Ask for who will call Missed. While no such ticket is open, nobody wants
// to know what else was armed, and a page of a million ids need not be noted down.
func (b *Board) AskOverdue() Ticket {
	b.mu.Lock()
	b.mu.overdue++
	b.mu.Unlock()
	return b.Ask()
}

// EndOverdue is End for a ticket of AskOverdue.
func (b *Board) EndOverdue(t Ticket) {
	b.End(t)
	b.mu.Lock()
	b.mu.overdue--
	b.mu.Unlock()
}

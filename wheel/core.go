package wheel

import (
	"hash/maphash"
	"math"
)

// never is the time of what does not happen: the clock does not reach it.
const never = math.MaxInt64

// core is the wheel without clock, lock and goroutine: a state machine that is
// told the time. It is one shard of an engine.
//
// Invariants, between two calls:
//   - Each node in use is in the index, and in one list: late when its due
//     time is at or before elapsed, else one slot of one level.
//   - It is in level n only if slotNumber(due, n) - slotNumber(elapsed, n) is from 1 to
//     slotCount-1 (level 0: due - elapsed), so that no two rounds share a slot.
//   - A node is never below the lowest level that place gives it.
type core struct {
	seed    maphash.Seed
	elapsed int64          // all that was due at or before it has left, or is late
	late    ref            // list of what is to leave with the next advance
	lateMin int64          // no due time in late is below it
	levels  [levels]*level // nil: never used
	slab    slab
	index   index
	picked  []entry // scratch of drain
}

func newCore(seed maphash.Seed, nowMS int64) core {
	return core{seed: seed, elapsed: nowMS, index: newIndex()}
}

// hash is what every method that takes a hash expects for id.
func hashOf(seed maphash.Seed, id string) uint64 { return maphash.String(seed, id) }

// find looks for id. Where it is not found, i is the place of t to put it.
func (c *core) find(hash uint32, id string) (t *table, i uint32, r ref) {
	t = c.index.tableOf(hash)
	for i = t.home(hash); ; i = t.after(i) {
		e := t.at(i)
		if e.ref == none {
			return t, i, none
		}
		if e.hash == hash && c.slab.at(e.ref).id == id {
			return t, i, e.ref
		}
	}
}

// schedule arms id, or moves it. It returns what the new place asks of the driver.
func (c *core) schedule(hash uint32, id string, dueMS int64) wakeup {
	c.index.prepare()
	t, i, r := c.find(hash, id)
	var n *node
	if r == none {
		r, n = c.slab.take()
		t.put(i, entry{hash, r})
		n.id = id
	} else {
		n = c.slab.at(r)
		c.unlink(r, n)
	}
	n.dueMS = dueMS
	return c.link(r, n)
}

// cancel disarms id.
func (c *core) cancel(hash uint32, id string) bool {
	t, i, r := c.find(hash, id)
	if r == none {
		return false
	}
	c.index.remove(t, i)
	c.unlink(r, c.slab.at(r))
	c.slab.give(r)
	return true
}

func (c *core) len() int { return c.slab.live }

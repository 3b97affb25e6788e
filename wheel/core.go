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
//   - Each node in use is in one list: late when its due time is at or before
//     elapsed, else one slot of one level.
//   - It is in level n only if slotNumber(due, n) - slotNumber(elapsed, n) is
//     from 1 to slotCount-1, so that no two rounds share a slot.
//   - It is never below the level that place gives it.
//   - It is in the index, once, unless it is in leaving.
type core struct {
	seed    maphash.Seed
	elapsed int64          // all that was due at or before it has left, or is late
	late    ref            // list of what is to leave with the next advance
	lateMin int64          // no due time in late is below it
	levels  [levels]*level // nil: never used
	slab    slab
	index   index

	arriving []arrival // scheduled, not yet in the index: see backlog.go
	leaving  []ref     // no longer armed, not yet out of their lists

	read   ref     // keeps the compiler from dropping reads that are made ahead of time
	picked []entry // scratch of drain
}

func newCore(seed maphash.Seed, nowMS int64) core {
	return core{
		seed:     seed,
		elapsed:  nowMS,
		index:    newIndex(),
		arriving: make([]arrival, 0, backlogLen),
		leaving:  make([]ref, 0, backlogLen),
	}
}

// hashOf is what every method that takes a hash of an id expects, the low half
// of it.
func hashOf(seed maphash.Seed, id string) uint64 { return maphash.String(seed, id) }

// schedule arms id, or moves it. It returns what the core asks of the driver
// besides what it asked before; so does cancel.
func (c *core) schedule(hash uint32, id string, dueMS int64) wakeup {
	c.arriving = append(c.arriving, arrival{id, dueMS, hash})
	if len(c.arriving) == backlogLen {
		c.arrive()
	}
	return c.tidyUp().earlier(c.wakeupFor(dueMS))
}

// cancel disarms id.
func (c *core) cancel(hash uint32, id string) (bool, wakeup) {
	if c.mayBeArriving(hash) {
		c.arrive()
	}
	t, i, r := c.find(hash, id)
	if r == none {
		return false, wakeup{never, never}
	}
	t.remove(i)
	c.remove(r)
	return true, c.tidyUp()
}

// find looks for id in the index. When it is not there, i is the place of t to
// put it.
func (c *core) find(hash uint32, id string) (t *table, i uint32, r ref) {
	t = c.index.tableOf(hash)
	free, some := uint32(0), false
	for i = t.home(hash); ; i = t.after(i) {
		switch e := t.at(i); {
		case e.ref == none:
			if some {
				i = free
			}
			return t, i, none
		case e.ref == dead:
			if !some {
				free, some = i, true
			}
		case e.hash == hash && c.slab.at(e.ref).id == id:
			return t, i, e.ref
		}
	}
}

// len is the number of armed ids.
func (c *core) len() int {
	c.arrive()
	return c.slab.live - len(c.leaving)
}

package wheel

import "slices"

// How many nodes one call touches at most, each with a few places of the index:
// it bounds how long a shard is locked.
const (
	pieceLen = 512
	tendLen  = 128
)

// advance takes elapsed towards nowMS and appends to out what has expired, the
// oldest slot first. After pieceLen nodes it stops short: it is to be called
// again while next().dueMS <= nowMS. When nowMS is before a time seen earlier,
// it does nothing.
func (c *core) advance(nowMS int64, out []Due) []Due {
	if nowMS < c.elapsed {
		return out
	}
	c.settle()
	for left := pieceLen; ; {
		if c.late != none {
			if out, left = c.drain(out, left); left == 0 {
				return out
			}
		}
		n, q, ok := c.nextSlot()
		if !ok || slotStart(q, n) > nowMS {
			c.elapsed = nowMS
			return out
		}
		if n == 0 {
			c.expire(q)
		} else if left = c.pourLast(n, q, left); left == 0 {
			return out
		}
	}
}

// nextSlot is the slot whose start comes first, of several the one of the
// highest level: a slot must be poured before those below it expire.
func (c *core) nextSlot() (level int, q int64, ok bool) {
	for n, l := range c.levels {
		if l == nil || l.sum == 0 {
			continue
		}
		p, found := l.next(slotNumber(c.elapsed, n) + 1)
		if found && (!ok || slotStart(p, n) <= slotStart(q, level)) {
			level, q, ok = n, p, true
		}
	}
	return level, q, ok
}

// expire takes elapsed to slot q of level 0, and the nodes of the slot to late,
// which is empty.
func (c *core) expire(q int64) {
	c.elapsed = q
	c.late, c.lateMin = c.levels[0].head(q), q
	c.levels[0].setHead(q, none)
}

// drain takes up to left nodes from late out of the core and appends them to
// out.
func (c *core) drain(out []Due, left int) ([]Due, int) {
	picked := c.picked[:0]
	for ; c.late != none && left > 0; left-- {
		n := c.slab.at(c.late)
		out = append(out, Due{n.id, n.dueMS})
		picked = append(picked, entry{ref: c.late})
		c.late = n.next
	}
	if c.late != none {
		c.slab.at(c.late).prev = none
	}
	// Hashing reads the ids, which are scattered in memory: in a loop of its
	// own the processor fetches several at a time.
	ids := out[len(out)-len(picked):]
	for i := range picked {
		picked[i].hash = uint32(hashOf(c.seed, ids[i].ID))
	}
	for part := range slices.Chunk(picked, backlogLen) {
		c.forget(part)
	}
	c.index.tidy(len(picked))
	c.picked = picked
	return out, left
}

// forget takes nodes that are in no list, at most backlogLen, out of the index
// and out of use.
func (c *core) forget(entries []entry) {
	var ahead [backlogLen]lines
	for i, e := range entries {
		ahead[i] = c.index.lines(e.hash)
	}
	c.read = readLines(ahead[:len(entries)])

	for _, e := range entries {
		t := c.index.tableOf(e.hash)
		t.remove(t.find(e))
		c.slab.give(e.ref)
	}
}

// pourLast pours slot q of level n at the last moment, just before its start.
func (c *core) pourLast(n int, q int64, left int) int {
	c.elapsed = slotStart(q, n) - 1
	return c.pour(n, q, left)
}

// pour moves up to left nodes of slot q of level n, the slot after the one that
// elapsed is in, to lower levels. These reach all of it: it ends less than two
// slots, which is one round of the level below, after elapsed.
func (c *core) pour(n int, q int64, left int) int {
	r := c.levels[n].head(q)
	for ; r != none && left > 0; left-- {
		nd := c.slab.at(r)
		next := nd.next
		c.link(r, nd)
		r = next
	}
	if r != none {
		c.slab.at(r).prev = none
	}
	c.levels[n].setHead(q, r)
	return left
}

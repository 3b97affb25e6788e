package wheel

// next is when the core needs its driver. Both times are exact or too early,
// never too late, and not before elapsed.
func (c *core) next() wakeup {
	c.settle()
	w := c.tidyUp()
	if c.late != none {
		w.dueMS = c.elapsed
		return w
	}
	for n, l := range c.levels {
		if l == nil || l.sum == 0 {
			continue
		}
		if q, ok := l.next(slotNumber(c.elapsed, n) + 1); ok {
			w = w.earlier(slotWakeup(q, n))
		}
	}
	w.tendMS = max(w.tendMS, c.elapsed)
	return w
}

// nextDue is a lower bound of the earliest due time: that itself where it lies in
// level 0, else the start of its slot.
func (c *core) nextDue() int64 {
	c.settle()
	if c.late != none {
		return c.lateMin
	}
	return c.next().dueMS
}

// untidy tells whether memory is to be given back, or a resize to be finished.
func (c *core) untidy() bool { return c.slab.sparse() || c.index.resizing() }

// tidyUp asks to be tended at once when the core is untidy.
func (c *core) tidyUp() wakeup {
	if c.untidy() {
		return wakeup{never, c.elapsed}
	}
	return wakeup{never, never}
}

// tend does a piece of the work that can wait: it pours slots ahead of time, so
// that no slot need be poured whole when its time has come, and gives memory
// back. It does nothing while something is due.
func (c *core) tend(nowMS int64) {
	if nowMS < c.elapsed || c.next().dueMS <= nowMS {
		return
	}
	c.elapsed = nowMS
	left := tendLen
	for n := len(c.levels) - 1; n > 0; n-- {
		q := slotNumber(c.elapsed, n) + 1
		if l := c.levels[n]; l != nil && l.head(q) != none {
			left = c.pour(n, q, left)
		}
	}
	for ; left > 0 && c.slab.sparse(); left-- {
		c.move(c.slab.topmost())
	}
	for ; left > 0 && c.index.resizing(); left -= sweepStep {
		c.index.sweep()
	}
}

// move gives node from another number, in a lower chunk.
func (c *core) move(from ref) {
	to, n := c.slab.take()
	*n = *c.slab.at(from)
	if n.next != none {
		c.slab.at(n.next).prev = to
	}
	if n.prev != none {
		c.slab.at(n.prev).next = to
	} else {
		c.replaceHead(from, n.dueMS, to)
	}
	hash := uint32(hashOf(c.seed, n.id))
	t := c.index.tableOf(hash)
	t.set(t.find(entry{hash, from}), entry{hash, to})
	c.slab.give(from)
}

package wheel

// wakeup says when a core needs its driver: from dueMS on it must be advanced,
// from tendMS on it can be tended, when nothing is due anywhere.
type wakeup struct{ dueMS, tendMS int64 }

func (w wakeup) earlier(v wakeup) wakeup {
	return wakeup{min(w.dueMS, v.dueMS), min(w.tendMS, v.tendMS)}
}

// place is the level that a due time after elapsed belongs to: the lowest that
// reaches it.
func (c *core) place(dueMS int64) int {
	n := 0
	for uint64(slotNumber(dueMS, n))-uint64(slotNumber(c.elapsed, n)) >= slotCount {
		n++
	}
	return n
}

// link puts node r, which is in no list, first in the list where its due time
// belongs.
func (c *core) link(r ref, n *node) {
	if n.dueMS <= c.elapsed {
		if c.late == none || n.dueMS < c.lateMin {
			c.lateMin = n.dueMS
		}
		c.push(r, n, c.late)
		c.late = r
		return
	}
	lv := c.place(n.dueMS)
	l := c.levels[lv]
	if l == nil {
		l = new(level)
		c.levels[lv] = l
	}
	q := slotNumber(n.dueMS, lv)
	c.push(r, n, l.head(q))
	l.setHead(q, r)
}

// wakeupFor is what an id with that due time asks of the driver.
func (c *core) wakeupFor(dueMS int64) wakeup {
	if dueMS <= c.elapsed {
		return wakeup{c.elapsed, never}
	}
	n := c.place(dueMS)
	return slotWakeup(slotNumber(dueMS, n), n)
}

// slotWakeup is what slot q of level n asks of the driver. Above level 0, a
// slot can be poured when elapsed has reached the slot before it, and must have
// been poured before elapsed reaches the slot itself.
func slotWakeup(q int64, n int) wakeup {
	if n == 0 {
		return wakeup{q, never}
	}
	return wakeup{slotStart(q, n), slotStart(q-1, n)}
}

// push links r before head.
func (c *core) push(r ref, n *node, head ref) {
	n.prev, n.next = none, head
	if head != none {
		c.slab.at(head).prev = r
	}
}

// unlink takes node r out of its list.
func (c *core) unlink(r ref, n *node) {
	if n.next != none {
		c.slab.at(n.next).prev = n.prev
	}
	if n.prev != none {
		c.slab.at(n.prev).next = n.next
		return
	}
	c.replaceHead(r, n.dueMS, n.next)
}

// replaceHead makes to the head of the list that r is the head of. A node does
// not know its list: it is the first, from the lowest that can hold its due
// time on, with r as the head.
func (c *core) replaceHead(r ref, dueMS int64, to ref) {
	if dueMS <= c.elapsed {
		c.late = to
		return
	}
	for n := c.place(dueMS); ; n++ {
		q := slotNumber(dueMS, n)
		if l := c.levels[n]; l != nil && l.head(q) == r {
			l.setHead(q, to)
			return
		}
	}
}

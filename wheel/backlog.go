package wheel

// A wheel of millions of ids is larger than the processor's caches: each step
// to a node or to a place of the index waits for memory. Steps that do not
// depend on each other can wait together, so the core gathers work that nobody
// waits for, and does it by the batch: first it reads all the places that the
// batch needs, then it changes them.
//
// Scheduling answers nothing, so all of it can be put off. A cancel must answer
// at once, but taking the node out of its list can be put off. Whatever looks
// at the lists calls settle first.
const backlogLen = 64

// arrival is one Schedule that has been put off.
type arrival struct {
	id    string
	dueMS int64
	hash  uint32
}

// settle does all that has been put off.
func (c *core) settle() {
	c.arrive()
	c.leave()
}

// mayBeArriving tells whether an id of this hash waits in arriving.
func (c *core) mayBeArriving(hash uint32) bool {
	for i := range c.arriving {
		if c.arriving[i].hash == hash {
			return true
		}
	}
	return false
}

// arrive puts what is arriving into the index and the lists, in its order: of
// one id the last one wins.
func (c *core) arrive() {
	if len(c.arriving) == 0 {
		return // mostly so: what looks at the lists settles again and again
	}
	var ahead [backlogLen]lines
	for i := range c.arriving {
		ahead[i] = c.index.lines(c.arriving[i].hash)
	}
	c.read = readLines(ahead[:len(c.arriving)])

	for i := range c.arriving {
		c.admit(&c.arriving[i])
	}
	clear(c.arriving)
	c.arriving = c.arriving[:0]
}

// admit arms one id. One that is armed gets a new node.
func (c *core) admit(a *arrival) {
	c.index.prepare()
	t, i, old := c.find(a.hash, a.id)
	r, n := c.slab.take()
	n.id, n.dueMS = a.id, a.dueMS
	if old == none {
		t.put(i, entry{a.hash, r})
	} else {
		t.set(i, entry{a.hash, r})
		c.remove(old)
	}
	c.link(r, n)
}

// remove takes node r, to which no entry leads any more, out of its list and
// out of use, soon.
func (c *core) remove(r ref) {
	c.leaving = append(c.leaving, r)
	if len(c.leaving) == backlogLen {
		c.leave()
	}
}

// leave takes what is leaving out of its lists and out of use.
func (c *core) leave() {
	if len(c.leaving) == 0 {
		return
	}
	var beside [backlogLen][2]*node
	for i, r := range c.leaving {
		n := c.slab.at(r)
		beside[i] = [2]*node{n, n}
		if n.next != none {
			beside[i][0] = c.slab.at(n.next)
		}
		if n.prev != none {
			beside[i][1] = c.slab.at(n.prev)
		}
	}
	var read ref
	for _, b := range beside[:len(c.leaving)] {
		read ^= b[0].prev ^ b[1].next
	}
	c.read = read

	for _, r := range c.leaving {
		c.unlink(r, c.slab.at(r))
		c.slab.give(r)
	}
	c.index.tidy(len(c.leaving))
	c.leaving = c.leaving[:0]
}

// readLines reads all of them. The loop does nothing else: the fewer
// instructions lie between two reads, the more of them the processor has under
// way at once. The same goes for the loop in leave.
func readLines(ahead []lines) (read ref) {
	for _, l := range ahead {
		read ^= l.first.ref ^ l.next.ref
	}
	return read
}

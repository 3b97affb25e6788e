package wheel

import (
	"errors"
	"fmt"
)

// audit checks every invariant of the core, as core.go states them.
func (c *core) audit() error {
	c.settle()
	seen := make(map[ref]string)
	walk := func(list string, r ref, fits func(dueMS int64) bool) error {
		for prev := none; r != none; prev, r = r, c.slab.at(r).next {
			n := c.slab.at(r)
			switch {
			case n.prev != prev:
				return fmt.Errorf("%s: node %d has prev %d, want %d", list, r, n.prev, prev)
			case seen[r] != "":
				return fmt.Errorf("node %d is in %s and in %s", r, seen[r], list)
			case !fits(n.dueMS):
				return fmt.Errorf("%s: node %d due %d does not belong here at %d", list, r, n.dueMS, c.elapsed)
			}
			seen[r] = list
		}
		return nil
	}

	if err := walk("late", c.late, func(due int64) bool { return due <= c.elapsed && due >= c.lateMin }); err != nil {
		return err
	}
	for n, l := range c.levels {
		if l == nil {
			continue
		}
		for i, head := range l.heads {
			if got := l.bits[i/64]>>(i%64)&1 == 1; got != (head != none) {
				return fmt.Errorf("level %d slot %d: bit %v, head %d", n, i, got, head)
			}
			at := slotNumber(c.elapsed, n)
			fits := func(due int64) bool {
				q := slotNumber(due, n)
				return due > c.elapsed && q > at && uint64(q)-uint64(at) < slotCount &&
					int(uint64(q)&slotMask) == i && c.place(due) <= n
			}
			if err := walk(fmt.Sprintf("level %d slot %d", n, i), head, fits); err != nil {
				return err
			}
		}
		for w, b := range l.bits {
			if got := l.sum>>w&1 == 1; got != (b != 0) {
				return fmt.Errorf("level %d word %d: sum %v, bits %x", n, w, got, b)
			}
		}
	}
	if len(seen) != c.slab.live {
		return fmt.Errorf("%d nodes in lists, %d in use", len(seen), c.slab.live)
	}
	for r := range seen {
		id := c.slab.at(r).id
		if _, _, got := c.find(uint32(hashOf(c.seed, id)), id); got != r {
			return fmt.Errorf("the index has %d for %q, which is node %d", got, id, r)
		}
	}
	if err := c.slab.audit(); err != nil {
		return err
	}
	return c.index.audit(c.slab.live)
}

func (s *slab) audit() error {
	live, held, end := 0, 0, 0
	for c, ch := range s.chunks {
		u := s.use[c]
		room := s.room[c/64]>>(c%64)&1 == 1
		if ch == nil {
			if !room {
				return fmt.Errorf("chunk %d is not held and has no room", c)
			}
			continue
		}
		held++
		end = c + 1
		inUse := 0
		for i := range ch {
			switch n := &ch[i]; {
			case i >= int(u.fresh) || c == 0 && i == 0:
				if *n != (node{}) && *n != (node{next: n.next, prev: unused}) {
					return fmt.Errorf("chunk %d: fresh node %d holds %+v", c, i, *n)
				}
			case n.prev != unused:
				inUse++
			case n.id != "":
				return fmt.Errorf("chunk %d: unused node %d keeps an id", c, i)
			}
		}
		if inUse != int(u.live) || room != (inUse < chunkLen-btoi(c == 0)) || inUse == 0 {
			return fmt.Errorf("chunk %d: %d in use, says %d, room %v", c, inUse, u.live, room)
		}
		live += inUse
	}
	if live != s.live || held != s.held || end != s.end {
		return fmt.Errorf("%d nodes in %d chunks below %d, says %d in %d below %d", live, held, end, s.live, s.held, s.end)
	}
	for w := range min(s.first, len(s.room)) {
		if s.room[w] != 0 {
			return fmt.Errorf("word %d of room is below first %d and has a bit", w, s.first)
		}
	}
	return nil
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (x *index) audit(live int) error {
	count := func(name string, t *table) error {
		var live, gone uint32
		for _, p := range t.pages {
			if p == nil {
				continue
			}
			for _, e := range p {
				switch e.ref {
				case none:
				case dead:
					gone++
				default:
					live++
				}
			}
		}
		if live != t.live || gone != t.dead {
			return fmt.Errorf("%s has %d entries and %d dead ones, says %d and %d", name, live, gone, t.live, t.dead)
		}
		return nil
	}
	if err := errors.Join(count("cur", &x.cur), count("next", &x.next)); err != nil {
		return err
	}
	if got := int(x.cur.live + x.next.live); got != live {
		return fmt.Errorf("the index has %d entries, want %d", got, live)
	}
	if !x.resizing() {
		if most := x.cur.size/(buryStep-1) + pieceLen; x.cur.dead > most {
			return fmt.Errorf("%d of %d places are dead, want %d at most", x.cur.dead, x.cur.size, most)
		}
		return nil
	}
	if e := x.cur.at(x.pos); e.ref != none && x.cur.home(e.hash) != x.pos {
		return fmt.Errorf("the sweep stands at %d, where %v was pushed from %d", x.pos, e, x.cur.home(e.hash))
	}
	return nil
}

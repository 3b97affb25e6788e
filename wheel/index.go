package wheel

// The index is made larger when it is more than 0.7 full, to 0.56, and smaller
// when it is less than 0.48 full, to 0.64. The operations themselves resize it,
// a few places at a time: size/sweepStep of them end a resize, and more must
// pass before the next is due. While it is not resized, they go round it and
// bury what is dead, so that no more than one place in seven is.
const (
	minSize   = pageLen
	sweepStep = 16
	buryStep  = 8
)

// index finds the node of an id by the hash of the id.
//
// While it is resized, next is the table that will replace cur. The places of
// cur from start to the one before pos have been emptied into next: swept of
// them, going round the end. Each hash belongs to one of the two tables, by its
// home in cur, so that a look-up searches one table.
//
// Invariant: a sweep ends at an empty place, and until the next one only an entry
// whose home is pos is put there. So no entry that is left in cur was pushed
// across pos from a home before it.
type index struct {
	cur, next         table
	start, pos, swept uint32

	burial uint32 // the place of cur where the search for dead entries goes on
}

func newIndex() index { return index{cur: newTable(minSize)} }

func (x *index) resizing() bool { return x.next.size != 0 }

// tableOf is the table that hash belongs to.
func (x *index) tableOf(hash uint32) *table {
	if x.resizing() && x.cur.dist(x.start, x.cur.home(hash)) < x.swept {
		return &x.next
	}
	return &x.cur
}

// lines are what finding hash will read, as far as it is likely to go.
func (x *index) lines(hash uint32) lines { return x.tableOf(hash).lines(hash) }

// prepare is called before each addition. It keeps places free, and takes a
// resize further.
func (x *index) prepare() {
	switch {
	case x.resizing():
		x.sweep()
	case uint64(x.cur.live+x.cur.dead+1)*100 > uint64(x.cur.size)*70:
		x.resize(sizeFor(x.cur.live, 56))
	}
}

// tidy is called after n removals. It takes a resize further, or the burial of
// what is dead.
func (x *index) tidy(n int) {
	for ; n > 0 && x.resizing(); n-- {
		x.sweep()
	}
	x.bury(n * buryStep)
	if !x.resizing() && x.cur.size > minSize && uint64(x.cur.live)*100 < uint64(x.cur.size)*48 {
		x.resize(sizeFor(x.cur.live, 64))
	}
}

// bury looks at the next few places of cur and empties those that are dead.
func (x *index) bury(places int) {
	if x.resizing() {
		return
	}
	for ; places > 0 && x.cur.dead > 0; places-- {
		if x.cur.at(x.burial).ref == dead {
			x.cur.bury(x.burial)
		} else {
			x.burial = x.cur.after(x.burial)
		}
	}
}

// sizeFor is the size of a table that live entries fill to percent. No more than
// 2.4 billion, which is 56 % of 2^32, have room.
func sizeFor(live uint32, percent uint64) uint32 {
	return max(minSize, uint32(uint64(live)*100/percent))
}

// resize begins to move all entries into a table of another size.
func (x *index) resize(size uint32) {
	x.next = newTable(size)
	x.start, x.swept, x.burial = 0, 0, 0
	for x.cur.at(x.start).ref != none {
		x.start++
	}
	x.pos = x.start
	x.sweep()
}

// sweep moves the entries of the next few places of cur into next, and goes on
// until it stands at an empty place or cur is empty.
func (x *index) sweep() {
	for n := 0; x.cur.live > 0; n++ {
		e := x.cur.at(x.pos)
		if e.ref == none && n >= sweepStep {
			return
		}
		switch e.ref {
		case none:
		case dead:
			x.cur.set(x.pos, entry{})
			x.cur.dead--
		default:
			x.next.add(e)
			x.cur.set(x.pos, entry{})
			x.cur.live--
		}
		x.step()
	}
	x.cur, x.next = x.next, table{}
}

// step takes the sweep to the next place, and drops the page that it has left.
func (x *index) step() {
	left := x.pos >> pageBits
	x.pos = x.cur.after(x.pos)
	if x.swept < x.cur.size { // beyond that: entries that went round the end
		x.swept++
	}
	if x.pos>>pageBits != left {
		x.cur.dropIfEmpty(left)
	}
}

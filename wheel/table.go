package wheel

// entry is one place of a table: the node and the hash of its id.
type entry struct {
	hash uint32
	ref  ref // none: empty; dead: removed, the place is still to be emptied
}

const dead = unused

const (
	pageBits = 11
	pageLen  = 1 << pageBits // entries of a page, 16 KiB
	pageMask = pageLen - 1
)

type page [pageLen]entry

// table is open addressing with linear probing, round the end. Places are in
// the order of hashes: a hash's home is hash/2^32 of the way through. So moving
// all entries to a table of another size is one pass through both, and any size
// will do.
//
// Pages are made when they are first written, and can be dropped one by one.
type table struct {
	pages []*page
	size  uint32 // places
	live  uint32 // entries that lead to a node
	dead  uint32 // entries that have been removed
}

func newTable(size uint32) table {
	return table{size: size, pages: make([]*page, (size+pageMask)>>pageBits)}
}

// home is where the search for hash begins.
func (t *table) home(hash uint32) uint32 {
	return uint32(uint64(hash) * uint64(t.size) >> 32)
}

func (t *table) after(i uint32) uint32 {
	if i++; i < t.size {
		return i
	}
	return 0
}

// dist is how many steps lead from place i to place j.
func (t *table) dist(i, j uint32) uint32 {
	if j >= i {
		return j - i
	}
	return j + (t.size - i)
}

func (t *table) at(i uint32) entry {
	if p := t.pages[i>>pageBits]; p != nil {
		return p[i&pageMask]
	}
	return entry{}
}

func (t *table) set(i uint32, e entry) {
	p := t.pages[i>>pageBits]
	if p == nil {
		p = new(page)
		t.pages[i>>pageBits] = p
	}
	p[i&pageMask] = e
}

// put fills place i, which holds no live entry.
func (t *table) put(i uint32, e entry) {
	if t.at(i).ref == dead {
		t.dead--
	}
	t.set(i, e)
	t.live++
}

// add puts e, which is not in the table, into the first place from its home on
// that holds no live entry.
func (t *table) add(e entry) {
	i := t.home(e.hash)
	for r := t.at(i).ref; r != none && r != dead; r = t.at(i).ref {
		i = t.after(i)
	}
	t.put(i, e)
}

// remove marks the entry at place i as dead: searches go on behind it.
func (t *table) remove(i uint32) {
	t.set(i, entry{t.at(i).hash, dead})
	t.live--
	t.dead++
}

// find is the place of e, which is in the table.
func (t *table) find(e entry) uint32 {
	i := t.home(e.hash)
	for t.at(i) != e {
		i = t.after(i)
	}
	return i
}

// lineLen is how many entries a line of the processor's cache holds.
const lineLen = 64 / 8

// lines are where a search begins, and the next line of the cache.
type lines struct{ first, next *entry }

func (t *table) lines(hash uint32) lines {
	i := t.home(hash)
	p := t.pages[i>>pageBits]
	if p == nil {
		return lines{&nowhere, &nowhere}
	}
	i &= pageMask
	return lines{&p[i], &p[min(i+lineLen, pageMask)]}
}

// nowhere stands for a place of a page that there is not.
var nowhere entry

// bury empties place i, which holds a dead entry. What stands behind it moves
// up, dead or not, unless that would put it before its home: so every search
// still finds what it would have found.
func (t *table) bury(i uint32) {
	t.dead--
	for j := t.after(i); ; j = t.after(j) {
		e := t.at(j)
		if e.ref == none {
			break
		}
		if t.dist(t.home(e.hash), j) >= t.dist(i, j) {
			t.set(i, e)
			i = j
		}
	}
	t.set(i, entry{})
}

// dropIfEmpty gives a page back. One that the sweep has left may hold entries:
// some whose home is at the end of the table, and that were pushed round it
// since.
func (t *table) dropIfEmpty(number uint32) {
	if p := t.pages[number]; p != nil && *p == (page{}) {
		t.pages[number] = nil
	}
}

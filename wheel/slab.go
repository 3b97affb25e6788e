package wheel

import (
	"math"
	"math/bits"
)

// ref is the number of a node in its slab. Numbers instead of pointers: the
// garbage collector has nothing to follow but the ids.
type ref uint32

const (
	none   ref = 0              // no node; node 0 is never used
	unused ref = math.MaxUint32 // prev of a node that is not in use
)

// node is one armed id.
type node struct {
	id    string
	dueMS int64
	next  ref // in the list of its slot, or in the free list of its chunk
	prev  ref // none: first of its list; unused: not in use
}

const (
	chunkBits = 10
	chunkLen  = 1 << chunkBits // nodes of a chunk, 32 KiB
	chunkMask = chunkLen - 1
)

type chunk [chunkLen]node

// slab owns the nodes, in chunks that come and go. New nodes come from the
// lowest chunk with room, so that the topmost run empty when the number of
// nodes falls; an empty chunk is given back at once.
type slab struct {
	chunks []*chunk   // nil: given back, or not needed yet
	use    []chunkUse // of the chunk of the same number
	room   []uint64   // bit c: chunk c has an unused node (a nil chunk has 1,024)
	first  int        // no word of room below it has a bit
	spare  *chunk     // one empty chunk, kept: a count that swings around a limit costs nothing
	live   int        // nodes in use
	held   int        // chunks that are not nil
	end    int        // chunks from here on are nil

	trimming            bool // the last answer of sparse
	scanChunk, scanLeft int  // where topmost goes on: the nodes of the chunk below scanLeft
}

// chunkUse says which nodes of a chunk are in use.
type chunkUse struct {
	free  ref    // first of the list of nodes that were in use before
	fresh uint16 // nodes from here on were never in use
	live  uint16 // nodes in use
}

// at returns node r, which stays where it is as long as it is in use.
func (s *slab) at(r ref) *node { return &s.chunks[r>>chunkBits][r&chunkMask] }

// take returns a node that was not in use.
func (s *slab) take() (ref, *node) {
	c := s.lowestWithRoom()
	if s.chunks[c] == nil {
		s.addChunk(c)
	}
	ch, u := s.chunks[c], &s.use[c]
	r := u.free
	if r != none {
		u.free = ch[r&chunkMask].next
	} else {
		r = ref(c)<<chunkBits | ref(u.fresh)
		u.fresh++
	}
	u.live++
	s.live++
	if u.free == none && u.fresh == chunkLen {
		s.room[c/64] &^= 1 << (c % 64)
	}
	return r, &ch[r&chunkMask]
}

// lowestWithRoom is the lowest chunk that has an unused node; its number may be
// new.
func (s *slab) lowestWithRoom() int {
	for ; s.first < len(s.room); s.first++ {
		if b := s.room[s.first]; b != 0 {
			return s.first*64 + bits.TrailingZeros64(b)
		}
	}
	c := len(s.chunks)
	s.chunks = append(s.chunks, make([]*chunk, 64)...)
	s.use = append(s.use, make([]chunkUse, 64)...)
	s.room = append(s.room, math.MaxUint64)
	return c
}

func (s *slab) addChunk(c int) {
	s.chunks[c], s.spare = s.spare, nil
	if s.chunks[c] == nil {
		s.chunks[c] = new(chunk)
	}
	s.use[c] = chunkUse{}
	if c == 0 {
		s.use[c].fresh = 1 // node 0 is never used
	}
	s.held++
	s.end = max(s.end, c+1)
}

// give takes node r out of use.
func (s *slab) give(r ref) {
	c := int(r >> chunkBits)
	u := &s.use[c]
	s.chunks[c][r&chunkMask] = node{next: u.free, prev: unused}
	u.free = r
	u.live--
	s.live--
	s.room[c/64] |= 1 << (c % 64)
	s.first = min(s.first, c/64)
	if u.live == 0 {
		s.dropChunk(c)
	}
}

// dropChunk gives back chunk c, which is empty, and the tables' tail with it
// when nothing above is left.
func (s *slab) dropChunk(c int) {
	if s.spare == nil {
		s.spare = s.chunks[c]
	}
	s.chunks[c] = nil
	s.held--
	if c == s.scanChunk {
		s.scanLeft = 0 // when the chunk comes back, topmost must begin anew
	}

	for s.end > 0 && s.chunks[s.end-1] == nil {
		s.end--
	}
	if words := (s.end + 63) / 64; words*4 < len(s.room) {
		s.chunks = append([]*chunk(nil), s.chunks[:words*64]...)
		s.use = append([]chunkUse(nil), s.use[:words*64]...)
		s.room = append([]uint64(nil), s.room[:words]...)
		s.first = min(s.first, words)
	}
}

// sparse tells whether nodes are to be moved out of the topmost chunk: from
// when more than a tenth of the nodes held are unused until only a thirtieth
// is. So a number that swings a little causes no work, and after a storm little
// stays.
func (s *slab) sparse() bool {
	least := chunkLen * 9 / 10
	if s.trimming {
		least = chunkLen * 29 / 30
	}
	s.trimming = s.live < (s.held-1)*least
	return s.trimming
}

// topmost is a node in use in the topmost chunk held. It is called when sparse.
func (s *slab) topmost() ref {
	c := s.end - 1
	if c != s.scanChunk || s.scanLeft == 0 {
		s.scanChunk, s.scanLeft = c, int(s.use[c].fresh)
	}
	for s.scanLeft--; s.chunks[c][s.scanLeft].prev == unused; s.scanLeft-- {
		if s.scanLeft == 0 {
			s.scanLeft = int(s.use[c].fresh)
		}
	}
	return ref(c)<<chunkBits | ref(s.scanLeft)
}

package persist

import (
	"cmp"
	"iter"
	"slices"
	"strings"
)

// maxBlock is how many places a block of sorted holds. A change moves half of that,
// 6 kB, and a million places need a few thousand blocks.
const maxBlock = 512

// sorted is a set of places in their order. It is a list of blocks, each sorted and
// none empty, so a place is found by two binary searches, and a change moves
// one block's worth and not the whole set.
type sorted struct {
	blocks [][]Cursor
	count  int
}

// comparePlaces orders by time, then by id, byte by byte.
func comparePlaces(a, b Cursor) int {
	return cmp.Or(cmp.Compare(a.DueMS, b.DueMS), strings.Compare(a.ID, b.ID))
}

// find returns the block where c stands or belongs, and its place there.
func (s *sorted) find(c Cursor) (block, at int, ok bool) {
	block, ok = slices.BinarySearchFunc(s.blocks, c, func(b []Cursor, c Cursor) int { return comparePlaces(b[0], c) })
	if ok {
		return block, 0, true
	}
	block = max(0, block-1) // the last that begins before c
	if block == len(s.blocks) {
		return block, 0, false // there is none at all
	}
	at, ok = slices.BinarySearchFunc(s.blocks[block], c, comparePlaces)
	return block, at, ok
}

// insert adds c, which must not be in the set.
func (s *sorted) insert(c Cursor) {
	s.count++
	if len(s.blocks) == 0 {
		s.blocks = [][]Cursor{{c}}
		return
	}
	i, at, _ := s.find(c)
	b := slices.Insert(s.blocks[i], at, c)
	s.blocks[i] = b
	if len(b) <= maxBlock {
		return
	}
	cut := len(b) / 2
	if i == len(s.blocks)-1 && at == len(b)-1 {
		cut = at // they come in order: leave full blocks behind, not half ones
	}
	right := slices.Clone(b[cut:])
	clear(b[cut:]) // let go of the ids
	s.blocks[i] = b[:cut]
	s.blocks = slices.Insert(s.blocks, i+1, right)
}

// remove takes c away, if it is there.
func (s *sorted) remove(c Cursor) {
	i, at, ok := s.find(c)
	if !ok {
		return
	}
	s.count--
	s.blocks[i] = slices.Delete(s.blocks[i], at, at+1)
	if len(s.blocks[i]) == 0 {
		s.blocks = slices.Delete(s.blocks, i, i+1)
	}
}

// first returns the first place.
func (s *sorted) first() (Cursor, bool) {
	if len(s.blocks) == 0 {
		return Cursor{}, false
	}
	return s.blocks[0][0], true
}

// after goes through the places after c, in order. The set must not change
// meanwhile.
func (s *sorted) after(c Cursor) iter.Seq[Cursor] {
	return func(yield func(Cursor) bool) {
		i, at, ok := s.find(c)
		if ok {
			at++
		}
		for ; i < len(s.blocks); i, at = i+1, 0 {
			for _, place := range s.blocks[i][at:] {
				if !yield(place) {
					return
				}
			}
		}
	}
}

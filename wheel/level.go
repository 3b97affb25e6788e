package wheel

import "math/bits"

// The shape of the wheel. A slot of level n is as wide as half of all slots of
// level n-1: the next slot of level n then fits into level n-1 beside the
// current one, and can be poured down ahead of time.
const (
	levelBits = 10
	slotCount = 1 << levelBits // of a level: 1,024
	slotMask  = slotCount - 1
	words     = slotCount / 64 // of a level's bitmap

	widthBits = levelBits - 1  // a slot of level n is 1<<(widthBits*n) ms wide
	levels    = 64 / widthBits // 7: the highest reaches from one end of int64 to the other
)

var _ [16]struct{} = [words]struct{}{} // level.sum has a bit for each word

// level is one ring of slots. Slot number q (a due time divided by the width of
// a slot) lies at q modulo slotCount.
type level struct {
	heads [slotCount]ref // first node of each slot's list, none when empty
	bits  [words]uint64  // bit i: slot i is not empty
	sum   uint16         // bit w: bits[w] is not 0
}

// slotNumber is the number of the slot of level n that dueMS belongs to.
func slotNumber(dueMS int64, n int) int64 { return dueMS >> (widthBits * n) }

// slotStart is the first millisecond of slot q of level n.
func slotStart(q int64, n int) int64 { return q << (widthBits * n) }

// setHead makes r the first node of slot q, none to empty it.
func (l *level) setHead(q int64, r ref) {
	i := uint(q) & slotMask
	l.heads[i] = r
	w, bit := i/64, uint64(1)<<(i%64)
	if r != none {
		l.bits[w] |= bit
		l.sum |= 1 << w
		return
	}
	l.bits[w] &^= bit
	if l.bits[w] == 0 {
		l.sum &^= 1 << w
	}
}

// head is the first node of slot q.
func (l *level) head(q int64) ref { return l.heads[uint(q)&slotMask] }

// next is the number of the first slot at or after q that is not empty. All
// that the level holds lies within one round from q on.
func (l *level) next(q int64) (int64, bool) {
	i := uint(q) & slotMask
	w := i / 64
	if b := l.bits[w] >> (i % 64); b != 0 {
		return q + int64(bits.TrailingZeros64(b)), true
	}
	// The words after w, and w itself last: there the slots before i are meant.
	sum := bits.RotateLeft16(l.sum, -int(w+1))
	if sum == 0 {
		return 0, false
	}
	w = (w + 1 + uint(bits.TrailingZeros16(sum))) % words
	found := w*64 + uint(bits.TrailingZeros64(l.bits[w]))
	return q + int64((found-i)&slotMask), true
}

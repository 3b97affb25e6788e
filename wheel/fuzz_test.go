package wheel

import (
	"encoding/binary"
	"fmt"
	"testing"
)

// crowd is so many ids that a few crowds resize the index and fill chunks.
const crowd = 1000

// FuzzWheel reads operations from bytes and compares the core with the model.
func FuzzWheel(f *testing.F) {
	f.Add([]byte{0, 1, 10, 2, 20})
	f.Add([]byte{0, 1, 10, 0, 1, 40, 1, 1, 0, 3, 45, 0, 2, 30, 3, 30})
	f.Add([]byte{0, 0, 255, 0, 1, 9, 0, 2, 18, 0, 3, 27, 3, 63, 4, 3, 9, 4, 3, 18, 4, 3, 27})
	f.Add([]byte{7, 1, 20, 7, 2, 12, 7, 3, 80, 8, 1, 0, 4, 0, 0, 6, 0, 0, 7, 2, 30, 3, 0, 14, 8, 3, 0, 4, 0, 0})
	f.Fuzz(func(t *testing.T, ops []byte) {
		now := int64(0)
		if len(ops) >= 8 {
			now = int64(binary.LittleEndian.Uint64(ops)) >> 16
		}
		p := newPair(now)
		for ops = ops[:min(len(ops), 600)]; len(ops) >= 3; {
			op, a, b := ops[0], ops[1], ops[2]
			ops = ops[3:]
			id := fmt.Sprint(a)
			var err error
			switch op % 9 {
			case 0, 1:
				err = p.schedule(id, saturate(now, distance(b, ops)))
			case 2:
				err = p.cancel(id)
			case 3:
				now = min(saturate(now, max(0, distance(b, ops))), never-1)
				err = p.advance(now)
			case 4:
				p.core.tend(now)
			case 5:
				err = p.advance(saturate(now, -max(0, distance(b, ops))))
			case 6:
				err = p.check()
			case 7:
				for i := 0; i < crowd && err == nil; i++ {
					err = p.schedule(fmt.Sprint(a, i), saturate(now, distance(b, ops)+int64(i)))
				}
			case 8:
				for i := 0; i < crowd && err == nil; i++ {
					err = p.cancel(fmt.Sprint(a, i))
				}
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := p.check(); err != nil {
			t.Fatal(err)
		}
		if err := p.core.audit(); err != nil {
			t.Fatal(err)
		}
		if err := p.advance(never - 1); err != nil {
			t.Fatal(err)
		}
	})
}

// distance is a power of two, by the low bits of b, and what the next byte
// adds: the high bits say what.
func distance(b byte, ops []byte) int64 {
	d := int64(1) << (b & 63 % 62)
	add := int64(0)
	if len(ops) > 0 {
		add = int64(int8(ops[0]))
	}
	switch b >> 6 {
	case 0:
		return d + add
	case 1:
		return add
	case 2:
		return d - 1
	default:
		return -d
	}
}

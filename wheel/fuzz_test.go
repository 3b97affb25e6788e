package wheel

import (
	"encoding/binary"
	"fmt"
	"testing"
)

// FuzzWheel reads operations from bytes and compares the core with the model.
func FuzzWheel(f *testing.F) {
	f.Add([]byte{0, 1, 10, 2, 20})
	f.Add([]byte{0, 1, 10, 0, 1, 40, 1, 1, 0, 3, 45, 0, 2, 30, 3, 30})
	f.Add([]byte{0, 0, 255, 0, 1, 9, 0, 2, 18, 0, 3, 27, 3, 63, 4, 3, 9, 4, 3, 18, 4, 3, 27})
	f.Fuzz(func(t *testing.T, ops []byte) {
		now := int64(0)
		if len(ops) >= 8 {
			now = int64(binary.LittleEndian.Uint64(ops)) >> 16
		}
		p := newPair(now)
		for len(ops) >= 3 && p.core.len() < 500 {
			op, a, b := ops[0], ops[1], ops[2]
			ops = ops[3:]
			id := fmt.Sprint(a)
			var err error
			switch op % 6 {
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
			}
			if err == nil {
				err = p.check()
			}
			if err != nil {
				t.Fatal(err)
			}
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

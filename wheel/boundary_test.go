package wheel

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// approaches are ways in which a driver may reach a time: all at once, or
// stopping wherever the core asks for it, with or without tending.
var approaches = []struct {
	name string
	to   func(t *testing.T, p *pair, nowMS int64)
}{
	{"in one jump", func(t *testing.T, p *pair, nowMS int64) {
		require.NoError(t, p.advance(nowMS))
	}},
	{"stopping where it must", func(t *testing.T, p *pair, nowMS int64) {
		for w := p.core.next(); w.dueMS < nowMS; w = p.core.next() {
			require.NoError(t, p.advance(w.dueMS))
		}
		require.NoError(t, p.advance(nowMS))
	}},
	{"tending as it goes", func(t *testing.T, p *pair, nowMS int64) {
		for w := p.core.next(); min(w.dueMS, w.tendMS) < nowMS; w = p.core.next() {
			if w.dueMS <= w.tendMS {
				require.NoError(t, p.advance(w.dueMS))
			} else {
				p.core.tend(w.tendMS)
			}
		}
		require.NoError(t, p.advance(nowMS))
	}},
}

// Cases 15, 19 and 20: the first four multiples of the width of each level's
// slots and of its whole round, one millisecond on either side, from clocks at
// and beside a boundary. The model fires at the due time exactly, so must the
// core.
func TestEveryLevelBoundaryFiresAtItsMillisecond(t *testing.T) {
	t.Parallel()
	for _, approach := range approaches {
		t.Run(approach.name, func(t *testing.T) {
			t.Parallel()
			for n := range levels {
				boundaryOfLevel(t, n, approach.to)
			}
		})
	}
}

func boundaryOfLevel(t *testing.T, n int, approach func(*testing.T, *pair, int64)) {
	width := uint64(1) << (widthBits * n)
	for _, span := range []uint64{width, width * slotCount} {
		for k := uint64(1); k <= 4; k++ {
			if span == 0 || k*span/k != span || k*span > math.MaxInt64/2 {
				continue // beyond what an int64 holds
			}
			for _, start := range []int64{0, 1, -1, int64(width) - 1, int64(k * span)} {
				for off := int64(-1); off <= 1; off++ {
					due := saturate(start, int64(k*span)+off)
					p := newPair(start)
					require.NoError(t, p.schedule("a", due))
					for _, at := range []int64{due - 1, due} {
						approach(t, p, at)
						require.NoError(t, p.check(), "level %d start %d due %d", n, start, due)
					}
					require.Zero(t, p.core.len(), "level %d start %d due %d", n, start, due)
				}
			}
		}
	}
}

// Case 22, and what lies so far out that differences overflow.
func TestTheExtremesOfTimeHaveASlot(t *testing.T) {
	t.Parallel()
	ends := []int64{math.MinInt64, math.MinInt64 + 1, -1 << 40, -1, 0, 1, 1 << 40, math.MaxInt64 - 2, math.MaxInt64 - 1, math.MaxInt64}
	for _, start := range ends {
		for _, due := range ends {
			p := newPair(start)
			require.NoError(t, p.schedule("a", due), "start %d due %d", start, due)
			require.NoError(t, p.core.audit(), "start %d due %d", start, due)
			if start < never {
				require.NoError(t, p.advance(start), "start %d due %d", start, due)
			}
			require.NoError(t, p.advance(never-1), "start %d due %d", start, due)
			require.NoError(t, p.check())
		}
	}
}

// A slot is poured before its time, so that a large one keeps nobody waiting.
func TestASlotIsPouredAheadOfTime(t *testing.T) {
	t.Parallel()
	p := newPair(0)
	const n = 20_000
	for i := range n {
		require.NoError(t, p.schedule(fmt.Sprint(i), slotStart(3, 1)+int64(i)%(1<<widthBits)))
	}
	from := slotStart(2, 1)
	require.Equal(t, from, p.core.next().tendMS)
	require.Equal(t, slotStart(3, 1), p.core.next().dueMS)
	for range n/tendLen + 1 {
		p.core.tend(from)
	}
	require.NoError(t, p.core.audit())
	require.Zero(t, p.core.levels[1].sum, "nothing is left in level 1")
	require.Equal(t, wakeup{slotStart(3, 1), never}, p.core.next())
	require.NoError(t, p.advance(slotStart(4, 1)))
}

// One call touches a limited number of nodes, however many are due.
func TestAPieceIsBounded(t *testing.T) {
	t.Parallel()
	p := newPair(0)
	for i := range 10 * pieceLen {
		require.NoError(t, p.schedule(fmt.Sprint(i), 1<<30+int64(i)%2))
	}
	for left := 10 * pieceLen; left > 0; {
		out := p.core.advance(1<<30+1, nil)
		require.LessOrEqual(t, len(out), pieceLen)
		left -= len(out)
		require.Equal(t, left, p.core.len())
	}
}

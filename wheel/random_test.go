//go:build !race

package wheel

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Long computations of one goroutine, ten times slower under -race: see UNRACED in the Makefile.

// A million operations in all: many short runs on few ids, and some that grow
// and shrink by thousands.
func TestRandomOperationsMatchTheModel(t *testing.T) {
	t.Parallel()
	seeds(t, 60, func(t *testing.T, rnd *rand.Rand) {
		randomRun(t, rnd, 1+rnd.IntN(1000), 10_000, 3)
	})
}

func TestRandomOperationsOnManyIDsMatchTheModel(t *testing.T) {
	t.Parallel()
	seeds(t, 8, func(t *testing.T, rnd *rand.Rand) {
		randomRun(t, rnd, 20_000, 50_000, 300)
	})
}

// randomRun does ops random operations on a number of ids, one in clockEvery
// with the clock. Now and then it compares all with the model; not always, so
// that what can be put off is.
func randomRun(t *testing.T, rnd *rand.Rand, ids, ops, clockEvery int) {
	now := rnd.Int64N(1<<41) - 1<<40
	p := newPair(now)
	growing := true
	for i := range ops {
		if i%(ops/4+1) == 0 {
			growing = i == 0 || rnd.IntN(2) == 0
		}
		id := fmt.Sprint(rnd.IntN(ids))
		switch {
		case rnd.IntN(clockEvery) == 0:
			require.NoError(t, p.randomClock(rnd, &now))
		case rnd.IntN(10) < 6 == growing:
			require.NoError(t, p.schedule(id, randomDue(rnd, now)))
		default:
			require.NoError(t, p.cancel(id))
		}
		if rnd.IntN(20*clockEvery) == 0 {
			require.NoError(t, p.check())
		}
		if rnd.IntN(ops/5) == 0 {
			require.NoError(t, p.core.audit())
		}
	}
	require.NoError(t, p.core.audit())
	require.NoError(t, p.advance(never-1))
}

func randomDue(rnd *rand.Rand, now int64) int64 {
	if rnd.IntN(10) == 0 {
		return saturate(now, -offset(rnd))
	}
	return saturate(now, offset(rnd))
}

// randomClock advances, steps the clock back, or tends.
func (p *pair) randomClock(rnd *rand.Rand, now *int64) error {
	switch rnd.IntN(6) {
	case 0:
		return p.advance(saturate(*now, -offset(rnd)))
	case 1, 2:
		for range rnd.IntN(10) {
			p.core.tend(*now)
		}
		return nil
	}
	// Jumps of every size, the longer the rarer, or all would be due all the
	// time.
	if jump := offset(rnd); jump < 1<<rnd.IntN(62)>>rnd.IntN(62) {
		*now = min(saturate(*now, jump), never-1)
	}
	return p.advance(*now)
}

// offset is a random distance of a due time or a clock's jump: all orders of
// magnitude alike, and often right at the edge of a slot or a round.
func offset(rnd *rand.Rand) int64 {
	n := int64(1) << rnd.IntN(62)
	switch rnd.IntN(4) {
	case 0:
		return rnd.Int64N(n + 1)
	case 1:
		return n + rnd.Int64N(3) - 1
	case 2:
		return rnd.Int64N(5000)
	default:
		return rnd.Int64N(50)
	}
}

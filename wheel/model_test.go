package wheel

import (
	"cmp"
	"flag"
	"fmt"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var seedFlag = flag.Uint64("seed", 0, "seed of the random runs; 0: by the clock")

// seeds returns the generators of n random runs. A failing run is repeated by
//
//	go test ./wheel -run TestName -seed N
func seeds(t *testing.T, n int, run func(t *testing.T, rnd *rand.Rand)) {
	t.Helper()
	parent, first := t.Name(), *seedFlag
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	} else {
		n = 1
	}
	for i := range uint64(n) {
		seed := first + i
		ok := t.Run("", func(t *testing.T) {
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("panic: %v\n%s", p, debug.Stack())
				}
				if t.Failed() {
					t.Errorf("repeat with: -run '^%s$' -seed %d", parent, seed)
				}
			}()
			run(t, rand.New(rand.NewPCG(seed, 0)))
		})
		if !ok {
			return
		}
	}
}

// model is the wheel at its dumbest: a sorted slice.
type model struct {
	nowMS int64
	armed []Due            // by due time, then id
	due   map[string]int64 // of the ids in armed
}

func byDue(a, b Due) int { return cmp.Or(cmp.Compare(a.DueMS, b.DueMS), cmp.Compare(a.ID, b.ID)) }

func (m *model) schedule(id string, dueMS int64) {
	m.cancel(id)
	d := Due{id, dueMS}
	i, _ := slices.BinarySearchFunc(m.armed, d, byDue)
	m.armed = slices.Insert(m.armed, i, d)
	m.due[id] = dueMS
}

func (m *model) cancel(id string) bool {
	due, ok := m.due[id]
	if !ok {
		return false
	}
	i, _ := slices.BinarySearchFunc(m.armed, Due{id, due}, byDue)
	m.armed = slices.Delete(m.armed, i, i+1)
	delete(m.due, id)
	return true
}

func (m *model) advance(nowMS int64) []Due {
	if nowMS < m.nowMS {
		return nil
	}
	m.nowMS = nowMS
	i := 0
	for i < len(m.armed) && m.armed[i].DueMS <= nowMS {
		i++
	}
	out := slices.Clone(m.armed[:i])
	for _, d := range out {
		delete(m.due, d.ID)
	}
	m.armed = slices.Delete(m.armed, 0, i)
	return out
}

// pair is a core and the model of it, driven alike.
type pair struct {
	core  core
	model model
}

func newPair(nowMS int64) *pair {
	return &pair{core: newCore(maphash.MakeSeed(), nowMS), model: model{nowMS: nowMS, due: make(map[string]int64)}}
}

func (p *pair) schedule(id string, dueMS int64) error {
	w := p.core.schedule(uint32(hashOf(p.core.seed, id)), id, dueMS)
	p.model.schedule(id, dueMS)
	if least := min(w.dueMS, w.tendMS); least > max(dueMS, p.core.elapsed) {
		return fmt.Errorf("scheduling %q for %d asks for the driver only at %d", id, dueMS, least)
	}
	return nil
}

func (p *pair) cancel(id string) error {
	got, _ := p.core.cancel(uint32(hashOf(p.core.seed, id)), id)
	if want := p.model.cancel(id); got != want {
		return fmt.Errorf("cancel %q: %v, want %v", id, got, want)
	}
	return nil
}

// advance advances as a driver does, piece by piece.
func (p *pair) advance(nowMS int64) error {
	var got []Due
	for {
		got = p.core.advance(nowMS, got)
		if p.core.next().dueMS > nowMS {
			break
		}
	}
	want := p.model.advance(nowMS)
	slices.SortStableFunc(got, byDue)
	if !slices.Equal(got, want) {
		return fmt.Errorf("advance to %d: %v, want %v", nowMS, got, want)
	}
	return nil
}

// check compares what can be asked without changing anything.
func (p *pair) check() error {
	if got, want := p.core.len(), len(p.model.armed); got != want {
		return fmt.Errorf("len: %d, want %d", got, want)
	}
	if len(p.model.armed) == 0 {
		return nil
	}
	first := p.model.armed[0].DueMS
	if got := p.core.nextDue(); got > first {
		return fmt.Errorf("nextDue: %d, but %d is armed", got, first)
	}
	if got := p.core.next().dueMS; got > max(first, p.core.elapsed) {
		return fmt.Errorf("next: %d, but %d is armed", got, first)
	}
	return nil
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

// saturate is a + b, at most MaxInt64 and at least MinInt64.
func saturate(a, b int64) int64 {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return math.MaxInt64
	case b < 0 && a < math.MinInt64-b:
		return math.MinInt64
	}
	return a + b
}

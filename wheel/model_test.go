package wheel

import (
	"cmp"
	"flag"
	"fmt"
	"hash/maphash"
	"math"
	"math/rand/v2"
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
	first := *seedFlag
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	} else {
		n = 1
	}
	for i := range uint64(n) {
		seed := first + i
		ok := t.Run("", func(t *testing.T) {
			defer func() {
				if t.Failed() || recover() != nil {
					t.Errorf("repeat with: -run '^%s$' -seed %d", t.Name(), seed)
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
	armed []Due // by due time, then id
}

func byDue(a, b Due) int { return cmp.Or(cmp.Compare(a.DueMS, b.DueMS), cmp.Compare(a.ID, b.ID)) }

func (m *model) schedule(id string, dueMS int64) {
	m.cancel(id)
	d := Due{id, dueMS}
	i, _ := slices.BinarySearchFunc(m.armed, d, byDue)
	m.armed = slices.Insert(m.armed, i, d)
}

func (m *model) cancel(id string) bool {
	i := slices.IndexFunc(m.armed, func(d Due) bool { return d.ID == id })
	if i < 0 {
		return false
	}
	m.armed = slices.Delete(m.armed, i, i+1)
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
	m.armed = slices.Delete(m.armed, 0, i)
	return out
}

// pair is a core and the model of it, driven alike.
type pair struct {
	core  core
	model model
}

func newPair(nowMS int64) *pair {
	return &pair{core: newCore(maphash.MakeSeed(), nowMS), model: model{nowMS: nowMS}}
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
	got := p.core.cancel(uint32(hashOf(p.core.seed, id)), id)
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

func TestRandomOperationsMatchTheModel(t *testing.T) {
	t.Parallel()
	seeds(t, 100, func(t *testing.T, rnd *rand.Rand) {
		now := rnd.Int64N(1<<41) - 1<<40
		p := newPair(now)
		ids := 1 + rnd.IntN(1000)
		for range 10_000 {
			id := fmt.Sprint(rnd.IntN(ids))
			var err error
			switch k := rnd.IntN(20); {
			case k < 9:
				err = p.schedule(id, saturate(now, offset(rnd)*int64(1-2*(k/8))))
			case k < 14:
				err = p.cancel(id)
			case k < 15:
				err = p.advance(now - offset(rnd)) // the clock steps back
			case k < 17:
				p.core.tend(now)
			default:
				if jump := offset(rnd); jump < 1<<rnd.IntN(50) {
					now += jump
				}
				err = p.advance(now)
			}
			require.NoError(t, err)
			require.NoError(t, p.check())
		}
		require.NoError(t, p.core.audit())
		require.NoError(t, p.advance(never-1))
	})
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

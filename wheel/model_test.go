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

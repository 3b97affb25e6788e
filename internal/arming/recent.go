package arming

import (
	"math"
	"time"

	"github.com/orderwheel/orderwheel/wheel"
)

// Never is the due time of an id that the user has cancelled.
const Never = math.MaxInt64

// limbo is how long at least the user's last answers are kept: an id that the wheel has
// fired may be on its way to the executor meanwhile, and neither knows of it.
const limbo = 250 * time.Millisecond

// recent are the user's last answers: when each id is due, or Never. There are two
// generations; whoever asks or notes when the first is limbo old begins another, and
// the older is forgotten.
type recent struct {
	gens [2]map[string]int64
	born time.Time // of the first
}

// age forgets what is old enough.
func (r *recent) age() {
	now := time.Now()
	old := now.Sub(r.born)
	if old < limbo {
		return
	}
	if old >= 2*limbo {
		r.gens[0] = emptied(r.gens[0])
	}
	r.gens[0], r.gens[1], r.born = emptied(r.gens[1]), r.gens[0], now
}

func emptied(m map[string]int64) map[string]int64 {
	if m == nil || len(m) > bigMap {
		return make(map[string]int64)
	}
	clear(m)
	return m
}

func (r *recent) note(id string, dueMS int64) {
	r.age()
	r.gens[0][id] = dueMS
}

func (r *recent) empty() bool { return len(r.gens[0])+len(r.gens[1]) == 0 }

func (r *recent) find(id string) (dueMS int64, ok bool) {
	for _, gen := range r.gens {
		if dueMS, ok = gen[id]; ok {
			return dueMS, true
		}
	}
	return 0, false
}

// Overruled tells of which of due a user's call was answered since they were read or fired, and
// said something else: by place, when the user says they are due, or Never. It knows the
// answers since the oldest open ticket was taken, and those of the last moment. before is what it
// told of the same before, and is brought up to date; nil: nothing.
func (b *Board) Overruled(due []wheel.Due, before map[int]int64) (by map[int]int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.recent.age()
	if len(b.mu.touched) == 0 && b.mu.recent.empty() {
		return before
	}
	by = before
	for i, d := range due {
		dueMS, ok := b.mu.recent.find(d.ID)
		if m := b.mu.touched[d.ID]; !ok && m.user > 0 {
			dueMS, ok = m.dueMS, true
		}
		switch {
		case !ok:
		case dueMS == d.DueMS:
			delete(by, i)
		default:
			if by == nil {
				by = make(map[int]int64)
			}
			by[i] = dueMS
		}
	}
	return by
}

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
// generations; the older is at least limbo old when it is forgotten.
type recent struct {
	gens [2]map[string]int64
	born time.Time // of the first
}

func (r *recent) note(id string, dueMS int64) {
	if now := time.Now(); r.gens[0] == nil || now.Sub(r.born) >= limbo {
		old := r.gens[1]
		if now.Sub(r.born) >= 2*limbo {
			r.gens[0] = nil
		}
		if old == nil || len(old) > bigMap {
			old = make(map[string]int64)
		}
		clear(old)
		r.gens[0], r.gens[1], r.born = old, r.gens[0], now
	}
	r.gens[0][id] = dueMS
}

func (r *recent) find(id string) (dueMS int64, ok bool) {
	for _, gen := range r.gens {
		if dueMS, ok = gen[id]; ok {
			return dueMS, true
		}
	}
	return 0, false
}

// Overruled tells which of due a user's call may have put off that was answered since they
// were read or fired: by place, when the user says they are due, or Never. It knows the
// answers since the oldest open ticket was taken, and those of the last moment.
func (b *Board) Overruled(due []wheel.Due) map[int]int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.mu.touched) == 0 && b.mu.recent.gens[0] == nil {
		return nil
	}
	var by map[int]int64
	for i, d := range due {
		dueMS, ok := b.mu.recent.find(d.ID)
		if m := b.mu.touched[d.ID]; !ok && m.user > 0 {
			dueMS, ok = m.dueMS, true
		}
		if ok && dueMS > d.DueMS {
			if by == nil {
				by = make(map[int]int64)
			}
			by[i] = dueMS
		}
	}
	return by
}

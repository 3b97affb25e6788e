package orderwheel

import (
	"fmt"
	"slices"
)

// Health is how the engine is now. For a readiness probe:
//
//	http.HandleFunc("/ready", func(w http.ResponseWriter, r *http.Request) {
//		if h := engine.Health(); !h.OK {
//			http.Error(w, strings.Join(h.Problems, "\n"), http.StatusServiceUnavailable)
//		}
//	})
type Health struct {
	OK       bool     // it runs, and there are no Problems
	Problems []string // what is wrong now, in words
	Warnings []string // what Start saw in Redis' settings that may cost tasks or time, in words
}

// behindAlarm is from how many decisions on that the wheel has not heard of it is said
// to be behind.
const behindAlarm = 10_000

// Health says how the engine is, by what it knows itself: it asks nothing of Redis, and
// costs the same however much is pending.
func (e *Engine) Health() Health {
	h := Health{Problems: e.store.Problems()}
	r := e.cur.Load()
	if r == nil {
		h.Problems = append(h.Problems, "the engine is not running: it closes nothing")
	} else {
		h.Warnings = slices.Clone(r.warnings)
		h.Problems = append(h.Problems, r.rec.Problems()...)
		h.Problems = append(h.Problems, r.exec.Problems()...)
		if n := r.board.Waiting(); n >= behindAlarm {
			h.Problems = append(h.Problems, fmt.Sprintf("the wheel is behind by %d ids", n))
		}
	}
	h.OK = len(h.Problems) == 0
	return h
}

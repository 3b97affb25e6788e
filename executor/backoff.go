package executor

import (
	"math"
	"math/rand/v2"
	"time"
)

// Backoff says how long a failed task waits: Base after the first attempt,
// doubled after each further one, never more than Cap, each changed at random
// by up to Jitter (0.2: plus or minus 20 %) so that tasks which failed together
// do not come back together. After Attempts attempts it is not tried again, but
// buried; 0 or less: there is no limit.
//
// A process that dies while it runs a task has used up an attempt, too: else a task
// that kills its process would do so for ever. What RetryAt puts off has not.
type Backoff struct {
	Base     time.Duration
	Cap      time.Duration
	Attempts int
	Jitter   float64
}

// After is the wait after the given attempt (1 for the first).
func (b Backoff) After(attempt int) time.Duration {
	d := min(b.Base, b.Cap)
	for i := 1; i < attempt && d < b.Cap; i++ {
		if d > b.Cap/2 {
			d = b.Cap
		} else {
			d *= 2
		}
	}
	wait := float64(d) * (1 + b.Jitter*(2*rand.Float64()-1))
	if wait >= math.MaxInt64 {
		return math.MaxInt64
	}
	return max(time.Duration(wait), 0)
}

// limit is how many attempts a claim may find used up and still be made; 0: any
// number.
func (b Backoff) limit() int { return max(b.Attempts, 0) }

// isLast reports whether no attempt comes after the given one.
func (b Backoff) isLast(attempt int) bool { return b.Attempts > 0 && attempt >= b.Attempts }

package executor

import (
	"math"
	"math/rand/v2"
	"time"
)

// Backoff says how long a failed task waits: Base after the first attempt,
// doubled after each further one, never more than Cap, each changed at random
// by up to Jitter (0.2: plus or minus 20 %) so that tasks which failed together
// do not come back together.
type Backoff struct {
	Base   time.Duration
	Cap    time.Duration
	Jitter float64
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
	return time.Duration(wait)
}

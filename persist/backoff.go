package persist

import (
	"math/rand/v2"
	"time"
)

// backoff is the wait between two attempts of one call: it doubles from base up to
// cap, and a random half of it is taken off, so that callers that failed
// together do not come back together.
type backoff struct{ base, cap time.Duration }

var defaultBackoff = backoff{base: 5 * time.Millisecond, cap: time.Second}

// wait returns the wait after the given number of failed attempts, 1 or more.
func (b backoff) wait(failed int) time.Duration {
	d := b.cap
	if shift := failed - 1; shift < 30 {
		d = min(b.cap, b.base<<shift)
	}
	return d - rand.N(d/2+1)
}

package recovery

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/orderwheel/orderwheel/persist"
)

// driftPer is the inverse of the rate at which two clocks may drift apart:
// 1/2000, the 500 ppm at which NTP slews at most.
const driftPer = 2000

// Clock estimates the store's clock from below. A reading says that the store
// showed StoreUS at some instant between Sent and Received, so the difference
// of its clock and ours lies between two bounds; further readings narrow them,
// passing time widens them by the drift, and a reading outside them means that
// the store's clock was stepped and starts afresh. This is Cristian's algorithm
// (Probabilistic Clock Synchronization, 1989) kept as an interval.
//
// It is safe for concurrent use. Before the first reading it shows 1970.
type Clock struct {
	base  time.Time    // where the local monotonic clock counts from
	lowUS atomic.Int64 // the store's clock less ours, its lower bound

	mu struct {
		sync.Mutex
		known   bool
		highUS  int64 // the upper bound
		localUS int64 // our clock when the bounds were last right
	}
}

// NewClock makes a clock that knows nothing yet.
func NewClock() *Clock { return &Clock{base: time.Now()} }

// Observe takes in one reading.
func (c *Clock) Observe(s persist.Sample) {
	sent, received := s.Sent.Sub(c.base).Microseconds(), s.Received.Sub(c.base).Microseconds()
	low, high := s.StoreUS-received-1, s.StoreUS-sent+1 // each of the three is a microsecond cut off

	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.known {
		drift := max(received-c.mu.localUS, 0) / driftPer
		// Only the time that the drift accounts for has been dealt with:
		// readings in quick succession would otherwise never widen the bounds.
		c.mu.localUS += drift * driftPer
		oldLow, oldHigh := c.lowUS.Load()-drift, c.mu.highUS+drift
		if low <= oldHigh && oldLow <= high {
			low, high = max(low, oldLow), min(high, oldHigh)
		} else {
			c.mu.localUS = received
		}
	} else {
		c.mu.known, c.mu.localUS = true, received
	}
	c.mu.highUS = high
	c.lowUS.Store(low)
}

// NowMS is the store's clock in Unix milliseconds: what it shows, or a little less.
func (c *Clock) NowMS() int64 {
	return (time.Since(c.base).Microseconds() + c.lowUS.Load()) / 1000
}

// LowerMS is a time, in Unix milliseconds, that the store's clock has reached, whatever
// the two clocks may have drifted apart since the last reading: what that reading
// showed, and the local time since it was received, less 1/2000 of that. An earlier reading
// that says more counts for more.
func (c *Clock) LowerMS() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	localUS := time.Since(c.base).Microseconds()
	return (localUS + c.lowUS.Load() - max(localUS-c.mu.localUS, 0)/driftPer - 1) / 1000
}

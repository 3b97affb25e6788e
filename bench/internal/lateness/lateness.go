// Package lateness counts how late things happen, and watches what the machine
// itself adds to it.
package lateness

import (
	"sync/atomic"
	"time"
)

const (
	fineStep, fineSteps     = 100 * time.Microsecond, 100_000 // up to 10 s
	coarseStep, coarseSteps = 10 * time.Millisecond, 100_000  // beyond, up to 1,010 s
)

// Counts counts delays in steps of a tenth of a millisecond, and from ten seconds
// on in steps of ten. The zero value is empty. It may be added to by many goroutines.
type Counts struct {
	early  atomic.Int64
	counts [fineSteps + coarseSteps]atomic.Int64
}

// Add counts one delay. One below zero is early, and counts as none.
func (c *Counts) Add(d time.Duration) {
	if d < 0 {
		c.early.Add(1)
		d = 0
	}
	i := int(d / fineStep)
	if i >= fineSteps {
		i = min(fineSteps+int((d-fineSteps*fineStep)/coarseStep), len(c.counts)-1)
	}
	c.counts[i].Add(1)
}

// Early is how many delays were below zero.
func (c *Counts) Early() int64 { return c.early.Load() }

// Quantile is the delay, in milliseconds, that the part q of all does not exceed.
// It is 0 when nothing was counted.
func (c *Counts) Quantile(q float64) float64 {
	var total, sum int64
	for i := range c.counts {
		total += c.counts[i].Load()
	}
	for i := range c.counts {
		if sum += c.counts[i].Load(); sum > 0 && float64(sum) >= q*float64(total) {
			return upperMS(i)
		}
	}
	return 0
}

// upperMS is where step i ends.
func upperMS(i int) float64 {
	if i < fineSteps {
		return float64(i+1) * fineStep.Seconds() * 1000
	}
	return (fineSteps*fineStep.Seconds() + float64(i-fineSteps+1)*coarseStep.Seconds()) * 1000
}

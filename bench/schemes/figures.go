package main

import (
	"math"
	"slices"
	"time"

	"github.com/orderwheel/orderwheel/bench/internal/scheme"
)

// Figures are what came of one trial.
type Figures struct {
	Orders        int     // that were not paid in time
	LateP50MS     float64 // handler entry after expire_at, of the first call for each order
	LateP99MS     float64
	LateMaxMS     float64
	Early         int // calls before expire_at
	NeverClosed   int
	DoubleEffects int // units given back to stock more than once
	CallsTwice    int // calls for an order that had been called before
	AfterKill     int // orders that expired after the process was killed, if it was

	QueriesPerOrder   float64 // statements of the order database
	CommandsPerOrder  float64 // of Redis, those inside scripts included
	CPUSeconds        float64 // of the processes
	ServersCPUSeconds float64
	MemoryMB          float64 // resident, the most of one process

	CanaryP99MS float64 // how late a goroutine that only sleeps was meanwhile
}

// judge judges the calls of the handler.
func judge(p scheme.Plan, calls []scheme.Call) Figures {
	f := Figures{Orders: p.Unpaid()}
	first := make(map[int]time.Time, p.Orders)
	for _, c := range calls {
		if p.Paid(c.Order) {
			continue
		}
		if c.Entry.Before(p.Order(c.Order).ExpireAt) {
			f.Early++
		}
		before, twice := first[c.Order]
		if twice {
			f.CallsTwice++
		}
		if !twice || c.Entry.Before(before) {
			first[c.Order] = c.Entry
		}
	}
	late := make([]float64, 0, len(first))
	for i, entry := range first {
		late = append(late, max(0, entry.Sub(p.Order(i).ExpireAt).Seconds()*1000))
	}
	slices.Sort(late)
	f.LateP50MS, f.LateP99MS, f.LateMaxMS = quantile(late, 0.5), quantile(late, 0.99), quantile(late, 1)
	return f
}

// expireAfter is how many orders that are not paid in time expire after t.
func expireAfter(p scheme.Plan, t time.Time) (n int) {
	for i := range p.Orders {
		if !p.Paid(i) && p.Order(i).ExpireAt.After(t) {
			n++
		}
	}
	return n
}

// quantile is the value that the part q of all does not exceed.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

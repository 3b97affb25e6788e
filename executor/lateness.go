package executor

import "sync/atomic"

// latenessBoundsMS are the upper bounds of the histogram's buckets, in
// milliseconds; the last bucket has none.
var latenessBoundsMS = [...]int64{1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 5_000, 30_000, 300_000}

// Lateness is a histogram of how late first attempts began, by the store's clock.
type Lateness struct {
	BoundsMS []int64  // upper bound of each bucket but the last, inclusive, milliseconds
	Counts   []uint64 // one more than BoundsMS: the last counts what is above all bounds
}

// OverFiveMinutes counts first attempts that began more than five minutes late.
func (l Lateness) OverFiveMinutes() uint64 {
	if len(l.Counts) == 0 { // of an engine that is not running
		return 0
	}
	return l.Counts[len(l.Counts)-1]
}

type histogram struct {
	counts [len(latenessBoundsMS) + 1]atomic.Uint64
}

func (h *histogram) add(lateMS int64) {
	i := 0
	for i < len(latenessBoundsMS) && lateMS > latenessBoundsMS[i] {
		i++
	}
	h.counts[i].Add(1)
}

func (h *histogram) snapshot() Lateness {
	l := Lateness{BoundsMS: append([]int64(nil), latenessBoundsMS[:]...)}
	for i := range h.counts {
		l.Counts = append(l.Counts, h.counts[i].Load())
	}
	return l
}

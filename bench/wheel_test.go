package bench

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/wheel"
)

const (
	batchLen = 10_000
	aheadMS  = 10 * 60 * 1000 // until the first due time: none fires while it is measured
	spreadMS = 30 * 60 * 1000 // over which due times are spread evenly
)

// BenchmarkWheel measures one operation while pending ids are armed: schedule
// arms one more, cancel and move take one at random.
func BenchmarkWheel(b *testing.B) {
	sizes := []int{100_000, 1_000_000, 10_000_000}
	if testing.Short() {
		sizes = []int{20_000}
	}
	for _, op := range []string{"schedule", "cancel", "move"} {
		for _, e := range engines {
			for _, pending := range sizes {
				if pending > 1_000_000 && e.name != "native" {
					continue // the rivals need gigabytes for it
				}
				if pending < 1_000_000 && e.variant {
					continue
				}
				b.Run(fmt.Sprintf("op=%s/engine=%s/pending=%d", op, e.name, pending), func(b *testing.B) {
					f := fill(b, e.new, pending)
					defer f.wheel.Stop()
					f.run(b, op)
					b.ReportMetric(f.perTask, "B/task")
					b.ReportMetric(f.gcMS, "gc-ms")
				})
			}
		}
	}
}

// filled is an engine with ids armed.
type filled struct {
	wheel wheel.Wheel
	ids   []string // all are armed
	next  int      // number of the next id that nobody has seen
	rnd   *rand.Rand

	perTask float64 // bytes of heap for one armed id, beside the id itself
	gcMS    float64 // of a full collection while they are armed
}

// fill arms pending ids.
func fill(b *testing.B, factory wheel.Factory, pending int) *filled {
	f := &filled{ids: makeIDs(0, pending), next: pending, rnd: rand.New(rand.NewPCG(1, 2))}
	before := heap()
	f.wheel = factory(nowMS)
	f.wheel.Start(func([]wheel.Due) { b.Error("fired while it was measured") })
	for _, id := range f.ids {
		f.wheel.Schedule(id, f.due())
	}
	f.perTask = float64(heap()-before) / float64(pending)
	f.gcMS = collectMS()
	return f
}

func (f *filled) due() int64 { return nowMS() + aheadMS + f.rnd.Int64N(spreadMS) }

// run measures op by the batch. With the timer stopped it restores the count
// after each batch, and picks the next.
func (f *filled) run(b *testing.B, op string) {
	b.ReportAllocs()
	due := make([]int64, batchLen)
	// Until the engine is in its steady state: what a batch more makes grow has
	// grown, and half of the ids have come and gone.
	for range max(3, len(f.ids)/2/batchLen) {
		ids := f.pick("schedule", due)
		for i, id := range ids {
			f.wheel.Schedule(id, due[i])
		}
		f.restore("schedule", ids, due)
	}
	ids := f.pick(op, due)
	i := 0
	b.ResetTimer()
	for b.Loop() {
		if op == "cancel" {
			f.wheel.Cancel(ids[i])
		} else {
			f.wheel.Schedule(ids[i], due[i])
		}
		if i++; i == batchLen {
			b.StopTimer()
			f.restore(op, ids, due)
			ids, i = f.pick(op, due), 0
			b.StartTimer()
		}
	}
}

// pick returns the ids of the next batch, and sets their due times: new ids to
// schedule, as new orders have, else some of those that are armed.
func (f *filled) pick(op string, due []int64) []string {
	for i := range due {
		due[i] = f.due()
	}
	if op == "schedule" {
		f.next += batchLen
		return makeIDs(f.next-batchLen, batchLen)
	}
	for i := range batchLen {
		j := i + f.rnd.IntN(len(f.ids)-i)
		f.ids[i], f.ids[j] = f.ids[j], f.ids[i]
	}
	return f.ids[:batchLen]
}

func (f *filled) restore(op string, ids []string, due []int64) {
	for i, id := range ids {
		switch op {
		case "schedule":
			f.wheel.Cancel(id)
		case "cancel":
			f.wheel.Schedule(id, due[i])
		}
	}
}

// makeIDs makes n order numbers of 19 digits, from number first on.
func makeIDs(first, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = idOf(first + i)
	}
	return ids
}

// heap is what is in use after a full collection, in bytes.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// collectMS is how long a full collection takes, the median of three.
func collectMS() float64 {
	var ms [3]float64
	for i := range ms {
		start := time.Now()
		runtime.GC()
		ms[i] = float64(time.Since(start).Microseconds()) / 1000
	}
	slices.Sort(ms[:])
	return ms[1]
}

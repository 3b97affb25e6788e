package bench

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/panjf2000/ants/v2"

	"github.com/orderwheel/orderwheel/bench/internal/lateness"
	"github.com/orderwheel/orderwheel/wheel"
)

const workers = 256

// BenchmarkWheelFire measures how late ids are in the hands of a worker of an
// ants pool, at a steady rate, all armed before. Beside it a canary, which only
// sleeps a millisecond again and again, shows what the machine itself adds.
//
// Alone on a machine, any engine comes near the canary. beside=processes has as many
// other processes compute all the time as there are processors.
func BenchmarkWheelFire(b *testing.B) {
	rate, seconds := 100_000, 10
	if testing.Short() {
		rate, seconds = 10_000, 1
	}
	for _, e := range engines {
		b.Run(fmt.Sprintf("engine=%s/rate=%d", e.name, rate), func(b *testing.B) {
			for b.Loop() {
				fireAtRate(b, e.new, rate, seconds)
			}
		})
		b.Run(fmt.Sprintf("engine=%s/rate=%d/beside=processes", e.name, rate), func(b *testing.B) {
			neighbours(b)
			for b.Loop() {
				fireAtRate(b, e.new, rate, seconds)
			}
		})
	}
}

func fireAtRate(b *testing.B, factory wheel.Factory, rate, seconds int) {
	n := rate * seconds
	ids := makeIDs(0, n)
	late := new(lateness.Counts)
	var left sync.WaitGroup
	left.Add(n)
	p := newPipe(func(d wheel.Due) {
		late.Add(time.Since(time.UnixMilli(d.DueMS)))
		left.Done()
	})
	w := factory(nowMS)
	w.Start(p.add)

	// All are armed before the first is due, also by the slowest engine.
	first := nowMS() + 2000 + int64(n/50)
	for i, id := range ids {
		w.Schedule(id, first+int64(i)*1000/int64(rate))
	}
	if nowMS() >= first {
		b.Fatal("it took too long to arm them")
	}
	runtime.GC()
	time.Sleep(time.Until(time.UnixMilli(first)))
	watch := lateness.StartWatch()
	left.Wait()
	watch.Stop()
	w.Stop()
	p.stop()

	watch.Report(b, late)
	b.ReportMetric(float64(watch.Peak), "goroutines-peak")
	b.ReportMetric(0, "ns/op") // means nothing here
}

// BenchmarkWheelStorm measures how long it takes to hand over ids that are all
// due in one millisecond, from that millisecond on.
func BenchmarkWheelStorm(b *testing.B) {
	n := 200_000
	if testing.Short() {
		n = 10_000
	}
	for _, e := range engines {
		b.Run(fmt.Sprintf("engine=%s/due=%d", e.name, n), func(b *testing.B) {
			for b.Loop() {
				storm(b, e.new, n)
			}
		})
	}
}

func storm(b *testing.B, factory wheel.Factory, n int) {
	ids := makeIDs(0, n)
	var got atomic.Int64
	done := make(chan time.Time, 1)
	w := factory(nowMS)
	w.Start(func(batch []wheel.Due) {
		if got.Add(int64(len(batch))) == int64(n) {
			done <- time.Now()
		}
	})
	due := nowMS() + 2000 + int64(n/50)
	for _, id := range ids {
		w.Schedule(id, due)
	}
	runtime.GC()
	if nowMS() >= due {
		b.Fatal("it took too long to arm them")
	}
	took := (<-done).Sub(time.UnixMilli(due))
	w.Stop()
	b.ReportMetric(float64(took.Microseconds())/1000, "handover-ms")
	b.ReportMetric(0, "ns/op") // means nothing here
}

// pipe leads ids from fire to an ants pool, as an executor does: fire only
// appends, and a goroutine of its own waits for free workers.
type pipe struct {
	pool *ants.PoolWithFuncGeneric[wheel.Due]
	wake chan struct{}
	quit chan struct{}
	done chan struct{}

	mu struct {
		sync.Mutex
		ready []wheel.Due
	}
}

func newPipe(work func(wheel.Due)) *pipe {
	pool, err := ants.NewPoolWithFuncGeneric(workers, work)
	if err != nil {
		panic(err)
	}
	p := &pipe{pool: pool, wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
	go p.run()
	return p
}

func (p *pipe) add(batch []wheel.Due) {
	p.mu.Lock()
	p.mu.ready = append(p.mu.ready, batch...)
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *pipe) run() {
	defer close(p.done)
	var taken []wheel.Due
	for {
		select {
		case <-p.wake:
		case <-p.quit:
			return
		}
		p.mu.Lock()
		taken, p.mu.ready = p.mu.ready, taken[:0]
		p.mu.Unlock()
		for _, d := range taken {
			if err := p.pool.Invoke(d); err != nil {
				panic(err)
			}
		}
	}
}

func (p *pipe) stop() {
	close(p.quit)
	<-p.done
	p.pool.Release()
}

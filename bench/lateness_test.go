package bench

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// lateness counts delays in steps of a tenth of a millisecond. It may be added
// to by many goroutines.
type lateness struct {
	early  atomic.Int64 // below zero
	counts [100_000]atomic.Int64
}

func (l *lateness) add(d time.Duration) {
	if d < 0 {
		l.early.Add(1)
		d = 0
	}
	l.counts[min(int(d/(100*time.Microsecond)), len(l.counts)-1)].Add(1)
}

// quantile is the delay, in milliseconds, that the part q of all does not
// exceed.
func (l *lateness) quantile(q float64) float64 {
	var total, sum int64
	for i := range l.counts {
		total += l.counts[i].Load()
	}
	for i := range l.counts {
		if sum += l.counts[i].Load(); sum > 0 && float64(sum) >= q*float64(total) {
			return float64(i+1) / 10
		}
	}
	return 0
}

// watch looks at the process while something is measured.
type watch struct {
	canary lateness // of a goroutine that sleeps for 1 ms, again and again
	peak   int      // goroutines, without those of the watch
	quit   chan struct{}
	done   sync.WaitGroup
}

func startWatch() *watch {
	w := &watch{quit: make(chan struct{})}
	w.done.Go(func() {
		for {
			select {
			case <-w.quit:
				return
			default:
			}
			start := time.Now()
			time.Sleep(time.Millisecond)
			w.canary.add(time.Since(start) - time.Millisecond)
			w.peak = max(w.peak, runtime.NumGoroutine()-1)
		}
	})
	return w
}

func (w *watch) stop() {
	close(w.quit)
	w.done.Wait()
}

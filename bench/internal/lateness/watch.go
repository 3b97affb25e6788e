package lateness

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

// Watch looks at the process while something is measured.
type Watch struct {
	Canary Counts // of a goroutine that sleeps for 1 ms, again and again: what the machine adds
	Peak   int    // the most goroutines, without that of the watch

	quit chan struct{}
	done sync.WaitGroup
}

// StartWatch begins to watch. What it has seen may be read after Stop.
func StartWatch() *Watch {
	w := &Watch{quit: make(chan struct{})}
	w.done.Go(func() {
		for {
			select {
			case <-w.quit:
				return
			default:
			}
			start := time.Now()
			time.Sleep(time.Millisecond)
			w.Canary.Add(time.Since(start) - time.Millisecond)
			w.Peak = max(w.Peak, runtime.NumGoroutine()-1)
		}
	})
	return w
}

// Stop ends the watch.
func (w *Watch) Stop() {
	close(w.quit)
	w.done.Wait()
}

// Report adds what was counted to a benchmark's figures: late-p50-ms, late-p99-ms,
// late-max-ms and early, and the canary's beside them.
func (w *Watch) Report(b *testing.B, late *Counts) {
	b.ReportMetric(late.Quantile(0.50), "late-p50-ms")
	b.ReportMetric(late.Quantile(0.99), "late-p99-ms")
	b.ReportMetric(late.Quantile(1), "late-max-ms")
	b.ReportMetric(float64(late.Early()), "early")
	b.ReportMetric(w.Canary.Quantile(0.50), "canary-p50-ms")
	b.ReportMetric(w.Canary.Quantile(0.99), "canary-p99-ms")
	b.ReportMetric(w.Canary.Quantile(1), "canary-max-ms")
}

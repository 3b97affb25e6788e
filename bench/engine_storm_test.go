package bench

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/bench/internal/lateness"
	"github.com/orderwheel/orderwheel/executor"
)

// drainsWithin bounds a hang.
const drainsWithin = 2 * time.Minute

// stormOnEngine measures how long it takes until n tasks that are due in one
// millisecond are done, acks included, from that millisecond on.
func stormOnEngine(b *testing.B, n int) {
	var ran atomic.Int64
	all := make(chan struct{})
	before := runtime.NumGoroutine()
	bed := newEngineBed(b, func(context.Context, executor.Task) error {
		if ran.Add(1) == int64(n) {
			close(all)
		}
		return nil
	})
	defer bed.close()
	zadd := zaddPipelined(b, bed.client, n)

	bed.start(b)
	due := time.UnixMilli(time.Now().Add(2*time.Second + time.Duration(n)*time.Second/armsPerSecond).UnixMilli())
	byCallers(b, callers, n, func(i int) error { return bed.schedule(idOf(i), due) })
	if !time.Now().Before(due) {
		b.Fatal("it took too long to schedule them")
	}
	runtime.GC()
	time.Sleep(time.Until(due))
	watch := lateness.StartWatch()
	select {
	case <-all:
	case <-time.After(drainsWithin):
		b.Fatalf("%d of %d have not run", int64(n)-ran.Load(), n)
	}
	handled := time.Since(due)
	for bed.left(b) > 0 {
		require.Less(b, time.Since(due), drainsWithin, "acks are missing")
		time.Sleep(time.Millisecond)
	}
	took := time.Since(due)
	watch.Stop()

	b.ReportMetric(ms(took), "done-ms")
	b.ReportMetric(ms(handled), "handled-ms")
	b.ReportMetric(perSecond(n, took), "closes/s")
	b.ReportMetric(zadd, "zadd-pipelined/s")
	b.ReportMetric(100*perSecond(n, took)/zadd, "%-of-zadd-pipelined")
	b.ReportMetric(float64(watch.Peak-before), "goroutines-peak")
	b.ReportMetric(0, "ns/op") // means nothing here
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

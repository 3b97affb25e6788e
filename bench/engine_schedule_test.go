package bench

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/orderwheel/orderwheel/executor"
)

// scheduleOnEngine measures how many tasks many callers schedule at once, and how
// long each of them waits, beside what they reach with a ZADD each.
func scheduleOnEngine(b *testing.B, n int) {
	bed := newEngineBed(b, func(context.Context, executor.Task) error { return nil })
	defer bed.close()
	zadd := zaddPipelined(b, bed.client, n)
	start := time.Now()
	byCallers(b, callers, n/4, func(i int) error {
		return bed.client.ZAdd(b.Context(), "{bench}:single", redis.Z{Score: float64(longAgoMS + i), Member: idOf(i)}).Err()
	})
	single := perSecond(n/4, time.Since(start))

	bed.start(b)
	now := time.Now()
	waits := make([]time.Duration, n)
	start = time.Now()
	byCallers(b, callers, n, func(i int) error {
		called := time.Now()
		err := bed.schedule(idOf(i), now.Add(10*time.Minute+time.Duration(i)*time.Millisecond))
		waits[i] = time.Since(called)
		return err
	})
	rate := perSecond(n, time.Since(start))
	slices.Sort(waits)

	b.ReportMetric(rate, "schedules/s")
	b.ReportMetric(ms(waits[n/2]), "wait-p50-ms")
	b.ReportMetric(ms(waits[n*99/100]), "wait-p99-ms")
	b.ReportMetric(single, "zadd-single/s")
	b.ReportMetric(zadd, "zadd-pipelined/s")
	b.ReportMetric(100*rate/zadd, "%-of-zadd-pipelined")
	b.ReportMetric(0, "ns/op") // means nothing here
}

package bench

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/executor"
	"github.com/orderwheel/orderwheel/persist"
)

// stepMS is how far apart the tasks of a recovery are due: a million lie within the
// engine's horizon, and hundreds fall due while it reads them.
const stepMS = 3

// recoverOnEngine measures how many tasks a second an engine that starts takes back
// from Redis, which go on falling due meanwhile, beside how many a client reads that
// does nothing with them.
func recoverOnEngine(b *testing.B, n int) {
	var ran atomic.Int64
	bed := newEngineBed(b, func(context.Context, executor.Task) error {
		ran.Add(1)
		return nil
	})
	defer bed.close()
	fillForRecovery(b, bed.client, n)
	runtime.GC()
	zrange := readAll(b, bed.client, n)

	runtime.GC()
	start := time.Now()
	bed.start(b)
	rate := perSecond(n, time.Since(start))

	b.ReportMetric(rate, "tasks/s")
	b.ReportMetric(zrange, "zrange-tasks/s")
	b.ReportMetric(100*rate/zrange, "%-of-zrange")
	b.ReportMetric(float64(ran.Load()), "fired-meanwhile")
	b.ReportMetric(0, "ns/op") // means nothing here
}

// fillForRecovery writes n tasks, of which the first are due from now on.
func fillForRecovery(b *testing.B, client *redis.Client, n int) {
	store, err := persist.New(client, persist.Options{})
	require.NoError(b, err)
	dues := make([]persist.Due, n)
	now := time.Now().UnixMilli()
	for i := range dues {
		dues[i] = persist.Due{ID: idOf(i), DueMS: now + int64(i)*stepMS}
	}
	require.NoError(b, store.Schedule(b.Context(), dues))
	require.NoError(b, store.Close(b.Context()))
}

// readAll is the rate at which one connection reads all tasks in pages, by a cursor
// of the due time, which no two of them share.
func readAll(b *testing.B, client *redis.Client, n int) float64 {
	start := time.Now()
	got, after := 0, "-inf"
	for {
		page, err := client.ZRangeArgsWithScores(b.Context(), redis.ZRangeArgs{
			Key: tasksKey("due"), ByScore: true, Start: after, Stop: "+inf", Count: persist.MaxBatch,
		}).Result()
		require.NoError(b, err)
		if len(page) == 0 {
			break
		}
		got, after = got+len(page), fmt.Sprintf("(%.0f", page[len(page)-1].Score)
	}
	rate := perSecond(n, time.Since(start))
	require.Equal(b, n, got)
	return rate
}

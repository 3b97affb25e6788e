package persist_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/persist"
	"github.com/stretchr/testify/require"
)

// One caller, one call at a time: what a batch costs. Each iteration schedules, claims
// and acknowledges the same ids, so that the store is as it was.
func BenchmarkRun(b *testing.B) {
	for _, server := range []string{"redis", "miniredis"} {
		for _, batch := range []int{1, 64, 1000} {
			b.Run(fmt.Sprintf("server=%s/batch=%d", server, batch), func(b *testing.B) {
				s := setupMini
				if server == "redis" {
					s = func(t testing.TB) bed { return setupReal(t, "--appendonly", "yes", "--appendfsync", "everysec") }
				}
				benchmarkRun(b, s(b), batch)
			})
		}
	}
}

func benchmarkRun(b *testing.B, store bed, batch int) {
	ctx := b.Context()
	all := ids("2026010203040500000", batch)
	dues := make([]persist.Due, batch)
	leases := make([]persist.Lease, batch)
	for i, id := range all {
		dues[i] = persist.Due{ID: id, DueMS: 1_700_000_000_123}
		leases[i] = persist.Lease{ID: id, Token: "0f3c7a5e9b1d"}
	}
	var schedule, claim, ack time.Duration
	timed := func(sum *time.Duration, f func() error) {
		start := time.Now()
		err := f()
		*sum += time.Since(start)
		require.NoError(b, err)
	}
	for b.Loop() {
		timed(&schedule, func() error { return store.Schedule(ctx, dues) })
		timed(&claim, func() error { _, err := store.Claim(ctx, "0f3c7a5e9b1d", all, time.Minute, 0); return err })
		timed(&ack, func() error { _, err := store.Ack(ctx, leases); return err })
	}
	rate := func(d time.Duration) float64 { return float64(batch*b.N) / d.Seconds() }
	b.ReportMetric(rate(schedule), "schedule-ids/s")
	b.ReportMetric(rate(claim), "claim-ids/s")
	b.ReportMetric(rate(ack), "ack-ids/s")
}

// A page out of a tie, which is the slowest place to find.
func BenchmarkWindow(b *testing.B) {
	const pending = 100_000
	store := setupReal(b)
	store.scheduled(b, past, ids("tie", pending)...)
	b.Run(fmt.Sprintf("pending=%d/page=1000", pending), func(b *testing.B) {
		for b.Loop() {
			page, err := store.Window(b.Context(), persist.Cursor{DueMS: past, ID: "tie-050000"}, past, 1000)
			require.NoError(b, err)
			require.Len(b, page.Due, 1000)
		}
		b.ReportMetric(float64(1000*b.N)/b.Elapsed().Seconds(), "tasks/s")
	})
}

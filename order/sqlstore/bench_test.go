package sqlstore_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/order"
)

// benchConns is how many connections close at once, on each database.
const benchConns = 8

// BenchmarkClose (with b.N, not b.Loop: what is closed must be created before) closes orders of two
// lines, half of them with a coupon. The servers write their log at each commit and do not wait for
// the disk, as in the tests.
func BenchmarkClose(b *testing.B) {
	for _, db := range backends {
		b.Run("db="+db.name, func(b *testing.B) {
			for _, batch := range []int{1, 100} {
				b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) { benchmarkClose(b, db, batch) })
			}
		})
	}
}

func benchmarkClose(b *testing.B, db backend, batch int) {
	s := newShop(b, db, db.opened(b, db.place(b)))
	s.DB().SetMaxOpenConns(benchConns)
	s.DB().SetMaxIdleConns(benchConns)
	nos := s.createMany("o", b.N)
	work := make(chan []string, len(nos))
	for part := range slices.Chunk(nos, batch) {
		work <- part
	}
	close(work)
	b.ResetTimer()
	var wg sync.WaitGroup
	for range benchConns {
		wg.Go(func() {
			for part := range work {
				results, errs := closeAll(s, part)
				for i, no := range part {
					if errs[i] != nil || results[i].Outcome != order.ClosedNow {
						b.Errorf("close %s: %v, %v", no, results[i], errs[i])
					}
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "closes/s")
	require.Zero(b, s.count(fmt.Sprintf(`SELECT COUNT(*) FROM orders WHERE status <> '%s'`, order.Closed)))
}

// closeAll closes one order as Close does, and more as CloseMany does.
func closeAll(s *shop, nos []string) ([]order.Result, []error) {
	if len(nos) > 1 {
		return s.CloseMany(context.Background(), nos, due)
	}
	r, err := s.Close(context.Background(), nos[0], due)
	return []order.Result{r}, []error{err}
}

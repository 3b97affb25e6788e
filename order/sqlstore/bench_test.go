package sqlstore_test

import (
	"context"
	"fmt"
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
			b.Run("batch=1", func(b *testing.B) { benchmarkClose(b, db) })
		})
	}
}

func benchmarkClose(b *testing.B, db backend) {
	s := newShop(b, db, db.opened(b, db.place(b)))
	s.DB().SetMaxOpenConns(benchConns)
	s.DB().SetMaxIdleConns(benchConns)
	nos := s.createMany("o", b.N)
	work := make(chan string, len(nos))
	for _, no := range nos {
		work <- no
	}
	close(work)
	b.ResetTimer()
	var wg sync.WaitGroup
	for range benchConns {
		wg.Go(func() {
			for no := range work {
				if r, err := s.Close(context.Background(), no, due); err != nil || r.Outcome != order.ClosedNow {
					b.Errorf("close %s: %v, %v", no, r, err)
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "closes/s")
	require.Zero(b, s.count(fmt.Sprintf(`SELECT COUNT(*) FROM orders WHERE status <> '%s'`, order.Closed)))
}

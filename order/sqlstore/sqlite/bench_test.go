package sqlite_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/sqlstore"
	"github.com/orderwheel/orderwheel/order/sqlstore/sqlite"
)

// BenchmarkOrders (with b.N, not b.Loop: what is paid or closed must be created before) creates,
// pays and closes orders of two lines, by one goroutine and by many, for each Sync.
func BenchmarkOrders(b *testing.B) {
	for _, m := range []struct {
		name string
		sync sqlite.Sync
	}{{"full", sqlite.SyncFull}, {"normal", sqlite.SyncNormal}} {
		for _, workers := range []int{1, 64} {
			run := func(op string, f func(*sqlstore.Store, int) error) {
				b.Run(fmt.Sprintf("sync=%s/workers=%d/%s", m.name, workers, op), func(b *testing.B) {
					benchmark(b, m.sync, workers, op, f)
				})
			}
			run("create", nil)
			run("close", func(s *sqlstore.Store, i int) error {
				_, err := s.Close(b.Context(), no(i), due)
				return err
			})
			run("pay", func(s *sqlstore.Store, i int) error {
				_, err := s.Pay(b.Context(), order.Payment{ID: no(i), OrderNo: no(i), Amount: 500, At: t0})
				return err
			})
		}
	}
}

var (
	t0  = time.UnixMilli(1_700_000_000_000)
	due = t0.Add(30 * time.Minute)
)

func no(i int) string { return fmt.Sprintf("order-%012d", i) }

func benchmark(b *testing.B, sync sqlite.Sync, workers int, op string, f func(*sqlstore.Store, int) error) {
	db, err := sqlite.OpenWith(b.Context(), filepath.Join(b.TempDir(), "orders.db"), sqlite.Options{Sync: sync})
	require.NoError(b, err)
	defer db.Close()
	s := sqlstore.New(db, sqlite.Dialect{})
	require.NoError(b, s.Migrate(b.Context()))
	for i := range 100 {
		require.NoError(b, s.AddStock(b.Context(), fmt.Sprintf("sku-%d", i), 1_000_000_000))
	}
	create := func(i int) error {
		return s.Create(b.Context(), order.Order{No: no(i), UserID: "u", Amount: 500, ExpireAt: due, Items: []order.Item{
			{SKU: fmt.Sprintf("sku-%d", i%100), Quantity: 1}, {SKU: fmt.Sprintf("sku-%d", (i+1)%100), Quantity: 2}}}, t0)
	}
	if f == nil {
		f = func(_ *sqlstore.Store, i int) error { return create(i) }
	} else {
		for i := range b.N {
			require.NoError(b, create(i))
		}
	}
	b.ResetTimer()
	next := make(chan int)
	done := make(chan error, workers)
	for range workers {
		go func() {
			var first error
			for i := range next {
				if err := f(s, i); err != nil {
					first = err
				}
			}
			done <- first
		}()
	}
	for i := range b.N {
		next <- i
	}
	close(next)
	for range workers {
		require.NoError(b, <-done)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), op+"s/s")
}

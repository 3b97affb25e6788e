package scheme_test

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/bench/internal/scheme"
	"github.com/orderwheel/orderwheel/internal/dbtest"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Stopping(m).Run()) }

func TestUnitsGivenBackTwiceOrNotAtAllAreCounted(t *testing.T) {
	t.Parallel()
	db, err := scheme.OpenDB(dbtest.MariaDB(t).DSN())
	require.NoError(t, err)
	defer db.Close()
	ctx := t.Context()
	p := scheme.Plan{Orders: 50, Rate: 10, FirstMS: time.Now().UnixMilli()}
	require.NoError(t, scheme.Create(ctx, db, p))
	require.NoError(t, scheme.Pay(ctx, db, p))
	effects := func() [2]int {
		double, err := scheme.DoubleEffects(ctx, db)
		require.NoError(t, err)
		missing, err := scheme.MissingEffects(ctx, db)
		require.NoError(t, err)
		return [2]int{double, missing}
	}
	require.Equal(t, [2]int{}, effects())
	for i, want := range map[int]scheme.Result{0: scheme.Closed, 1: scheme.Closed, 9: scheme.Nothing} {
		for _, end := range []func(context.Context, string) (scheme.Result, error){
			func(ctx context.Context, id string) (scheme.Result, error) { return scheme.Close(ctx, db, id) },
			func(ctx context.Context, id string) (scheme.Result, error) { return scheme.CloseAsWritten(ctx, db, id) },
		} {
			got, err := end(ctx, p.Order(i).ID)
			require.NoError(t, err)
			require.Equal(t, want, got, "order %d", i)
			want = scheme.Nothing // closed before
		}
	}
	require.Equal(t, [2]int{}, effects())
	open, err := scheme.Open(ctx, db)
	require.NoError(t, err)
	require.Equal(t, p.Unpaid()-2, open)

	_, err = db.ExecContext(ctx, "UPDATE stock SET stock = stock + 3 WHERE sku_id = 1; UPDATE stock SET stock = stock - 2 WHERE sku_id = 5")
	require.NoError(t, err)
	require.Equal(t, [2]int{3, 2}, effects())
}

func TestOneOfManyClosesClosesAnOrder(t *testing.T) {
	t.Parallel()
	db, err := scheme.OpenDB(dbtest.MariaDB(t).DSN())
	require.NoError(t, err)
	defer db.Close()
	p := scheme.Plan{Orders: 10, Rate: 10}
	require.NoError(t, scheme.Create(t.Context(), db, p))
	results := make(chan scheme.Result, 8)
	var all sync.WaitGroup
	for range cap(results) {
		all.Go(func() {
			r, err := scheme.Close(t.Context(), db, p.Order(3).ID)
			if err == nil {
				results <- r
			}
		})
	}
	all.Wait()
	close(results)
	count := make(map[scheme.Result]int)
	for r := range results {
		count[r]++
	}
	require.Equal(t, map[scheme.Result]int{scheme.Closed: 1, scheme.Nothing: cap(results) - 1}, count)
	double, err := scheme.DoubleEffects(t.Context(), db)
	require.NoError(t, err)
	require.Zero(t, double)
}

func TestAPlanGivesEachOrderItsMillisecond(t *testing.T) {
	t.Parallel()
	p := scheme.Plan{Orders: 100, FirstMS: 5000, Rate: 40, MixedEvery: 50, MixedLater: time.Second}
	require.EqualValues(t, 6000, p.Order(0).ExpireAt.UnixMilli(), "it has longer to pay")
	require.EqualValues(t, 5025, p.Order(1).ExpireAt.UnixMilli())
	require.EqualValues(t, 5000+99*25, p.Last().UnixMilli())
	require.Equal(t, 90, p.Unpaid())
	i, ok := p.Index(p.Order(42).ID)
	require.True(t, ok)
	require.Equal(t, 42, i)
	for _, id := range []string{"", "42", p.Order(100).ID} {
		_, ok := p.Index(id)
		require.False(t, ok, "%q", id)
	}
}

package orderwheel_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/executor"
	"github.com/orderwheel/orderwheel/internal/redistest"
	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/sqlstore"
	"github.com/orderwheel/orderwheel/order/sqlstore/sqlite"
)

// shop is an order database with stock.
func shop(t *testing.T) *sqlstore.Store {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "orders.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	store := sqlstore.New(db, sqlite.Dialect{})
	require.NoError(t, store.Migrate(t.Context()))
	require.NoError(t, store.AddStock(t.Context(), "tea", 1_000_000))
	return store
}

func create(t *testing.T, store *sqlstore.Store, no string, expireAt time.Time) {
	t.Helper()
	require.NoError(t, store.Create(t.Context(), order.Order{
		No: no, UserID: "ann", Amount: 100, ExpireAt: expireAt, Items: []order.Item{{SKU: "tea", Quantity: 1}},
	}, time.Now()))
}

func requireStatus(t *testing.T, store *sqlstore.Store, no string, want order.Status) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, status, err := store.Find(context.Background(), no)
		return err == nil && status == want
	}, hang, 5*time.Millisecond, "%s is not %s", no, want)
}

// Case 52: what Redis has lost is known to the order database alone.
func TestAnEmptiedRedisIsFilledAgainFromTheOrderDatabase(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		store := shop(t)
		eng := start(t, rdb, orderwheel.Closing(store), func(c *orderwheel.Config) {
			c.Source, c.SweepEvery = store, 50*time.Millisecond
		})
		require.Eventually(t, func() bool { // the round of Start is over, and an epoch is known
			return rdb.Exists(t.Context(), "{orderwheel:0}:epoch", "{orderwheel:0}:reconcile").Val() == 2
		}, hang, time.Millisecond)
		begun := time.Now()
		for i := range 100 {
			expireAt := begun.Add(3*time.Second + time.Duration(i)*5*time.Millisecond)
			require.NoError(t, eng.Schedule(t.Context(), fmt.Sprint("soon", i), expireAt))
			create(t, store, fmt.Sprint("soon", i), expireAt)
		}
		require.NoError(t, eng.Schedule(t.Context(), "late", begun.Add(time.Hour)))
		create(t, store, "late", begun.Add(time.Hour))
		require.NoError(t, rdb.FlushAll(t.Context()).Err())
		require.Eventually(t, func() bool { return eng.Stats().Recovery.ReconcileFound > 0 }, hang, time.Millisecond)
		for i := range 100 {
			requireStatus(t, store, fmt.Sprint("soon", i), order.Closed)
		}
		require.Positive(t, eng.Stats().Recovery.EpochsLost)
		require.Eventually(t, func() bool {
			score, err := rdb.ZScore(t.Context(), "{orderwheel:0}:due", "late").Result()
			return err == nil && int64(score) >= begun.Add(time.Hour).UnixMilli()
		}, hang, time.Millisecond, "and what is due later stands there again")
	})
}

// Redis and the app are both new, as after a machine was lost.
func TestAStartOnAnEmptyRedisClosesWhatTheOrderDatabaseHas(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		store := shop(t)
		create(t, store, "overdue", time.Now().Add(time.Millisecond))
		create(t, store, "soon", time.Now().Add(time.Second))
		create(t, store, "paid", time.Now().Add(time.Second))
		_, err := store.Pay(t.Context(), order.Payment{ID: "p", OrderNo: "paid", Amount: 100, At: time.Now()})
		require.NoError(t, err)
		var r runs
		start(t, rdb, func(ctx context.Context, task executor.Task) error {
			_ = r.handle(ctx, task)
			return orderwheel.Closing(store)(ctx, task)
		}, func(c *orderwheel.Config) { c.Source = store })
		requireStatus(t, store, "overdue", order.Closed)
		requireStatus(t, store, "soon", order.Closed)
		empty(t, rdb)
		require.Equal(t, map[string]int{"overdue": 1, "soon": 1}, r.byID())
		// Where Start reads Redis after the order was put back, it finds it first.
		require.Contains(t, []executor.Source{executor.FromReconcile, executor.FromRecovery}, r.tasks[0].Source)
	})
}

func TestWhatIsDueBeyondTheHorizonIsReadInTime(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		var r runs
		eng := start(t, rdb, r.handle, func(c *orderwheel.Config) { c.Horizon, c.Grace = 2*time.Second, hang })
		begun := time.Now()
		// First, so that even a machine that is short of processor time moves it before it is due.
		require.NoError(t, eng.Schedule(t.Context(), "moved", begun.Add(1800*time.Millisecond)))
		require.NoError(t, eng.Schedule(t.Context(), "moved", begun.Add(time.Hour)))
		for i := range 200 {
			require.NoError(t, eng.Schedule(t.Context(), fmt.Sprint(i), begun.Add(time.Duration(i)*25*time.Millisecond)))
		}
		require.Less(t, eng.Stats().Armed, 180)
		r.wait(t, 200)
		require.NotContains(t, r.byID(), "moved")
		require.Zero(t, eng.Stats().Recovery.Found, "the wheel has fired all, and the sweep none")
		// A page that was read before an id ran may arm it once more: it fires at once, and its claim finds nothing.
		require.Eventually(t, func() bool { return eng.Stats().Armed == 0 }, hang, time.Millisecond)
	})
}

// 20,000 are overdue at Start: they are worked off in order, and what is due soon does
// not wait behind them.
func TestWhatIsDueSoonDoesNotWaitBehindABacklog(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	const backlog = 20_000
	for from := 0; from < backlog; from += 1000 {
		var list []redis.Z
		for i := from; i < from+1000; i++ {
			list = append(list, redis.Z{Score: float64(1000 + i), Member: fmt.Sprintf("%06d", i)})
		}
		require.NoError(t, rdb.ZAdd(t.Context(), "{orderwheel:0}:due", list...).Err())
	}
	var r runs
	eng := start(t, rdb, func(ctx context.Context, task executor.Task) error {
		if task.ID != "soon" {
			time.Sleep(10 * time.Millisecond)
		}
		return r.handle(ctx, task)
	})
	require.NoError(t, eng.Schedule(t.Context(), "soon", time.Now().Add(200*time.Millisecond)))
	require.Eventually(t, func() bool { return r.byID()["soon"] == 1 }, hang, 5*time.Millisecond)
	require.Less(t, r.count(), backlog, "the backlog still waits")
	require.Less(t, eng.Stats().Executor.Ready, 10_000, "and not in memory")
	r.wait(t, backlog+1)
	empty(t, rdb)
	require.Len(t, r.byID(), backlog+1)
}

package orderwheel_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/internal/redistest"
	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/sqlstore"
	"github.com/orderwheel/orderwheel/order/sqlstore/sqlite"
	"github.com/orderwheel/orderwheel/persist"
)

// crashShop is a shop whose processes are killed: their database and their Redis, both of
// which stay.
type crashShop struct {
	t      *testing.T
	redis  *redis.Client
	tasks  *persist.Redis
	orders *sqlstore.Store
	path   string        // of the database
	placed []order.Order // with what a process was given to place
	ran    []crashRun    // in all processes
}

// Each order is of two of each sku, and has a coupon.
const (
	crashStock    = 100
	crashQuantity = 2
)

func newCrashShop(t *testing.T) *crashShop {
	rdb := redistest.Start(t).Client(t)
	tasks, err := persist.New(rdb, persist.Options{})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "orders.db")
	db, err := sqlite.OpenWith(t.Context(), path, sqlite.Options{Sync: sqlite.SyncNormal})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	s := &crashShop{t: t, redis: rdb, tasks: tasks, orders: sqlstore.New(db, sqlite.Dialect{}), path: path}
	require.NoError(t, s.orders.Migrate(t.Context()))
	for _, sku := range []string{"a", "b"} {
		require.NoError(t, s.orders.AddStock(t.Context(), sku, crashStock))
	}
	return s
}

// toPlace makes n orders that expire in that time from now.
func (s *crashShop) toPlace(n int, in time.Duration) (orders []order.Order) {
	s.t.Helper()
	at := time.Now().Add(in)
	for range n {
		no := fmt.Sprint("o", len(s.placed))
		require.NoError(s.t, s.orders.AddCoupon(s.t.Context(), "coupon-"+no, "u", at.Add(time.Hour)))
		orders = append(orders, order.Order{
			No: no, UserID: "u", Amount: 500, CouponID: "coupon-" + no, ExpireAt: at,
			Items: []order.Item{{SKU: "a", Quantity: crashQuantity}, {SKU: "b", Quantity: crashQuantity}},
		})
		s.placed = append(s.placed, orders[len(orders)-1])
	}
	return orders
}

// place places n orders that expire in that time from now, and schedules them.
func (s *crashShop) place(n int, in time.Duration) {
	s.t.Helper()
	for _, o := range s.toPlace(n, in) {
		require.NoError(s.t, s.orders.Create(s.t.Context(), o, time.Now()))
		require.NoError(s.t, s.tasks.Schedule(s.t.Context(), []persist.Due{{ID: o.No, DueMS: order.CeilMS(o.ExpireAt)}}))
	}
}

// stand is where each task that was placed stands, and how many orders are closed.
type stand struct{ gone, due, running, closed int }

// stand reads it after a kill. No task stands in two places, and nothing is half done.
func (s *crashShop) stand() (st stand) {
	s.t.Helper()
	ctx := context.Background()
	for _, o := range s.placed {
		places := 0
		for place, count := range map[string]*int{"due": &st.due, "running": &st.running, "dead": new(int)} {
			if s.redis.ZScore(ctx, "{orderwheel:0}:"+place, o.No).Err() == nil {
				*count++
				places++
			}
		}
		require.LessOrEqual(s.t, places, 1, o.No)
		st.gone += 1 - places
	}
	s.balanced()
	st.closed = s.count(`SELECT COUNT(*) FROM orders WHERE status = 'closed'`)
	return st
}

// balanced checks that stock, ledger, coupons and log are what the orders say.
func (s *crashShop) balanced() {
	s.t.Helper()
	require.Zero(s.t, s.count(`SELECT COUNT(*) FROM orders WHERE closed_at < expire_at`), "closed early")
	require.Zero(s.t, s.count(`SELECT COUNT(*) FROM sku_stock AS k WHERE stock + lock_stock <> ? OR sold <> 0 OR lock_stock <>
		(SELECT COALESCE(SUM(quantity), 0) FROM order_items JOIN orders USING (order_no) WHERE sku_id = k.sku_id AND status = 'unpaid')`,
		crashStock), "stock")
	require.Zero(s.t, s.count(`SELECT COUNT(*) FROM order_items AS i JOIN orders USING (order_no) WHERE
		(SELECT GROUP_CONCAT(op, '+' ORDER BY op) FROM stock_ledger AS l WHERE l.order_no = i.order_no AND l.sku_id = i.sku_id)
		IS NOT CASE status WHEN 'closed' THEN 'lock+release' ELSE 'lock' END`), "ledger")
	require.Zero(s.t, s.count(`SELECT COUNT(*) FROM orders JOIN user_coupons AS c USING (coupon_id)
		WHERE c.status <> CASE orders.status WHEN 'closed' THEN 'unused' ELSE 'frozen' END`), "coupons")
	require.Zero(s.t, s.count(`SELECT COUNT(*) FROM orders WHERE (status = 'closed') <>
		((SELECT COUNT(*) FROM close_log AS l WHERE l.order_no = orders.order_no) = 1)`), "closed once")
}

func (s *crashShop) count(query string, args ...any) (n int) {
	s.t.Helper()
	require.NoError(s.t, s.orders.DB().QueryRowContext(context.Background(), query, args...).Scan(&n))
	return n
}

// recovers runs one more process until every order is closed and no task is left, and stops
// it. It returns the calls of its handler.
func (s *crashShop) recovers(j crashJob) []crashRun {
	s.t.Helper()
	before := len(s.ran)
	p := s.spawn(j)
	require.Eventually(s.t, func() bool { return s.count(`SELECT COUNT(*) FROM orders WHERE status <> 'closed'`) == 0 },
		crashHang, 5*time.Millisecond, "an order is not closed")
	empty(s.t, s.redis)
	p.stop()
	require.Equal(s.t, len(s.placed), s.count(`SELECT COUNT(*) FROM orders`))
	require.Equal(s.t, stand{gone: len(s.placed), closed: len(s.placed)}, s.stand())
	empty(s.t, s.redis)
	for _, r := range s.ran {
		for _, o := range s.placed {
			require.False(s.t, o.No == r.id && r.ms < order.CeilMS(o.ExpireAt), "%+v is early", r)
		}
	}
	return s.ran[before:]
}

package audit

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/executor"
	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/sqlstore"
	"github.com/orderwheel/orderwheel/order/sqlstore/sqlite"
)

const namespace = "audited"

// shop is a small app under audit. Its engine is the test itself: it calls the
// handler and moves the tasks.
type shop struct {
	*Audit
	t     *testing.T
	store *sqlstore.Store
	db    *sql.DB
	redis *redis.Client
	close executor.Handler
}

func setup(t *testing.T) *shop {
	t.Helper()
	ctx := t.Context()
	dir := t.TempDir()
	db, err := sqlite.OpenWith(ctx, filepath.Join(dir, "orders.db"), sqlite.Options{Sync: sqlite.SyncNormal})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	store := sqlstore.New(db, sqlite.Dialect{})
	require.NoError(t, store.Migrate(ctx))
	require.NoError(t, store.AddStock(ctx, "apple", 100))
	require.NoError(t, store.AddStock(ctx, "pear", 100))

	rdb := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { require.NoError(t, rdb.Close()) })
	a, err := Open(ctx, Config{DB: db, Redis: rdb, Namespace: namespace, Dir: dir})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	require.NoError(t, a.NoteStock(ctx))

	closing := func(ctx context.Context, task executor.Task) error {
		_, err := store.Close(ctx, task.ID, task.Now)
		return err
	}
	return &shop{Audit: a, t: t, store: store, db: db, redis: rdb, close: a.Wrap(closing)}
}

// sound is a shop with an order in each state, and no fault: one paid and two
// closed with their coupons, money that came late for a closed one, and one
// that is open.
func sound(t *testing.T) *shop {
	t.Helper()
	s := setup(t)
	past, future := time.Now().Add(-time.Second), time.Now().Add(time.Hour)
	s.create("paid", future, "coupon-1")
	s.pay("paid", order.PaidNow)
	s.create("closed", past, "coupon-2")
	s.fire("closed", executor.FromWheel)
	s.create("late", past, "")
	s.fire("late", executor.FromWheel)
	s.pay("late", order.Refunded)
	s.create("open", future, "coupon-3")
	return s
}

// create places an order of 2 apples and 3 pears and, as the engine would, its
// task.
func (s *shop) create(orderNo string, expireAt time.Time, coupon string) {
	s.t.Helper()
	ctx := s.t.Context()
	require.NoError(s.t, s.redis.ZAdd(ctx, "{"+namespace+":0}:due", redis.Z{Score: float64(expireAt.UnixMilli()), Member: orderNo}).Err())
	if coupon != "" {
		err := s.store.AddCoupon(ctx, coupon, "user", time.Now().Add(time.Hour))
		if !errors.Is(err, order.ErrDuplicate) {
			require.NoError(s.t, err)
		}
	}
	require.NoError(s.t, s.store.Create(ctx, order.Order{
		No: orderNo, UserID: "user", Amount: 500, CouponID: coupon, ExpireAt: expireAt,
		Items: []order.Item{{SKU: "apple", Quantity: 2}, {SKU: "pear", Quantity: 3}},
	}, time.Now()))
}

func (s *shop) pay(orderNo string, want order.PayOutcome) {
	s.t.Helper()
	outcome, err := s.store.Pay(s.t.Context(), order.Payment{ID: "payment of " + orderNo, OrderNo: orderNo, Amount: 500, At: time.Now()})
	require.NoError(s.t, err)
	require.Equal(s.t, want, outcome)
	s.settle(orderNo)
}

func (s *shop) fire(orderNo string, from executor.Source) {
	s.t.Helper()
	s.call(orderNo, from)
	s.settle(orderNo)
}

func (s *shop) call(orderNo string, from executor.Source) {
	s.t.Helper()
	s.callAt(orderNo, from, time.Now())
}

func (s *shop) callAt(orderNo string, from executor.Source, now time.Time) {
	s.t.Helper()
	require.NoError(s.t, s.close(s.t.Context(), executor.Task{ID: orderNo, Attempt: 1, Now: now, Source: from}))
}

// noteCall notes a call that no handler got.
func (s *shop) noteCall(orderNo, from, claim string, now time.Time) {
	s.log.write("enter %d %d %d %s 1 %s %q\n", s.log.calls.Add(1), time.Now().UnixMicro(), now.UnixMicro(), claim, from, orderNo)
}

func (s *shop) extend(orderNo string, to time.Time) {
	s.t.Helper()
	require.NoError(s.t, s.store.Extend(s.t.Context(), orderNo, to))
}

// told is what Schedule does, and the note that it has returned.
func (s *shop) told(orderNo string, to time.Time) {
	s.t.Helper()
	begun := time.Now()
	require.NoError(s.t, s.redis.ZAdd(s.t.Context(), "{"+namespace+":0}:due", redis.Z{Score: float64(to.UnixMilli()), Member: orderNo}).Err())
	s.Moved(begun, orderNo, to)
}

// settle removes the order's task, as the engine would.
func (s *shop) settle(orderNo string) {
	s.t.Helper()
	require.NoError(s.t, s.redis.ZRem(s.t.Context(), "{"+namespace+":0}:due", orderNo).Err())
}

// sql does what no correct program would.
func (s *shop) sql(statements ...string) {
	s.t.Helper()
	for _, statement := range statements {
		_, err := s.db.ExecContext(s.t.Context(), statement)
		require.NoError(s.t, err, statement)
	}
}

// report is the report but for its milliseconds.
func (s *shop) report() Report {
	s.t.Helper()
	r, err := s.Report(s.t.Context())
	require.NoError(s.t, err)
	require.LessOrEqual(s.t, r.LateMS.P50, r.LateMS.Max)
	r.LateMS = LateMS{}
	return r
}

func (s *shop) move(orderNo, to string) {
	s.t.Helper()
	s.settle(orderNo)
	require.NoError(s.t, s.redis.ZAdd(s.t.Context(), "{"+namespace+":0}:"+to, redis.Z{Score: 1, Member: orderNo}).Err())
}

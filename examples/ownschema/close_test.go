package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/examples/internal/local"
	"github.com/orderwheel/orderwheel/internal/redistest"
	"github.com/orderwheel/orderwheel/order"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).purgeStaleWorkers"),
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).ticktock"))
}

func TestWhatIsNotPaidIsClosedOnce(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	_, err := local.Patiently(func(toPay time.Duration) error {
		out.Reset()
		return run(t.Context(), toPay, &out)
	})
	require.NoError(t, err)
	require.Equal(t, `10 orders placed:                  10 to be paid, 0 paid, 0 closed; stock 200, of which 30 locked
4 paid:                            6 to be paid, 4 paid, 0 closed; stock 188, of which 18 locked
their time is over:                0 to be paid, 4 paid, 6 closed; stock 188, of which 0 locked
the close run once more for all:   0 to be paid, 4 paid, 6 closed; stock 188, of which 0 locked
`, out.String())
}

// asked is when an order was to expire, and expireAt when it does in whole seconds.
var (
	asked    = time.Date(2026, 5, 1, 12, 29, 59, 1, time.UTC)
	expireAt = time.Date(2026, 5, 1, 12, 30, 0, 0, time.UTC)
)

// setup is a mall with one order of two teas, out of three.
func setup(t *testing.T) mall {
	t.Helper()
	place, err := local.Open(t.Context(), schema+`INSERT INTO pms_sku_stock VALUES ('tea', 3, 0);`)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, place.Close()) })
	m := mall{place.DB}
	require.NoError(t, m.place(t.Context(), "o1", []item{{"tea", 2}}, 100, asked.Add(-time.Hour), ceilSecond(asked)))
	return m
}

func (m mall) requireClose(t *testing.T, orderSN string, now time.Time, want order.Result) {
	t.Helper()
	got, err := m.Close(t.Context(), orderSN, now)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func (m mall) requireTally(t *testing.T, want tally) {
	t.Helper()
	got, err := m.tally(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestAnOrderClosesAtItsSecondAndNotAMillisecondBefore(t *testing.T) {
	t.Parallel()
	m := setup(t)
	m.requireClose(t, "o1", expireAt.Add(-time.Millisecond), order.Result{Outcome: order.NotYetDue, ExpireAt: expireAt})
	m.requireTally(t, tally{toBePaid: 1, stock: 3, locked: 2})
	m.requireClose(t, "o1", expireAt, order.Result{Outcome: order.ClosedNow})
	for range 2 {
		m.requireClose(t, "o1", expireAt, order.Result{Outcome: order.ClosedAlready})
		m.requireTally(t, tally{closed: 1, stock: 3})
	}
}

func TestAPaidOrderIsNotClosedAndAClosedOneNotPaid(t *testing.T) {
	t.Parallel()
	m := setup(t)
	require.ErrorIs(t, m.place(t.Context(), "o2", []item{{"tea", 2}}, 100, asked, expireAt), order.ErrOutOfStock)
	require.NoError(t, m.place(t.Context(), "o2", []item{{"tea", 1}}, 100, asked, expireAt))
	paid, err := m.pay(t.Context(), "o1", asked)
	require.NoError(t, err)
	require.True(t, paid)
	for _, status := range []int{toBeShipped, shipped, completed} {
		_, err := m.db.ExecContext(t.Context(), `UPDATE oms_order SET status = ? WHERE order_sn = 'o1'`, status)
		require.NoError(t, err)
		m.requireClose(t, "o1", expireAt, order.Result{Outcome: order.WasPaid})
	}
	m.requireClose(t, "o2", expireAt, order.Result{Outcome: order.ClosedNow})
	paid, err = m.pay(t.Context(), "o2", expireAt)
	require.NoError(t, err)
	require.False(t, paid)
	m.requireTally(t, tally{paid: 1, closed: 1, stock: 1})
}

func TestOrdersWithoutAnExpireTimeAndUnknownOnesAreNotClosed(t *testing.T) {
	t.Parallel()
	m := setup(t)
	_, err := m.db.ExecContext(t.Context(), `UPDATE oms_order SET expire_time = NULL`)
	require.NoError(t, err)
	m.requireClose(t, "o1", expireAt, order.Result{Outcome: order.NotYetDue})
	m.requireClose(t, "none", expireAt, order.Result{Outcome: order.NotFound})
	ids, _, err := m.Unpaid(t.Context(), "", 10)
	require.NoError(t, err)
	require.Empty(t, ids)
}

func TestStockThatWasChangedFromOutsideLeavesTheOrderOpen(t *testing.T) {
	t.Parallel()
	m := setup(t)
	_, err := m.db.ExecContext(t.Context(), `UPDATE pms_sku_stock SET lock_stock = 1`)
	require.NoError(t, err)
	_, err = m.Close(t.Context(), "o1", expireAt)
	require.ErrorIs(t, err, order.ErrInconsistency)
	m.requireTally(t, tally{toBePaid: 1, stock: 3, locked: 1})
}

func TestTheEngineBringsBackWhatRedisLost(t *testing.T) {
	t.Parallel()
	m := setup(t) // its order is in no Redis, and overdue
	engine, err := orderwheel.New(orderwheel.Config{Redis: redistest.Mini(t), Handler: orderwheel.Closing(m), Source: m})
	require.NoError(t, err)
	require.NoError(t, engine.Start(t.Context()))
	require.NoError(t, local.Until(t.Context(), func() (bool, error) {
		got, err := m.tally(t.Context())
		return got.closed == 1 && engine.Stats().Recovery.ReconcileFound == 1, err
	}))
	require.NoError(t, engine.Stop(t.Context()))
}

func TestTheReconcileIsARangeOfItsIndex(t *testing.T) {
	t.Parallel()
	m := setup(t)
	require.NoError(t, m.place(t.Context(), "o2", []item{{"tea", 1}}, 100, asked, expireAt))
	ids, dueMS, err := m.Unpaid(t.Context(), "", 1)
	require.NoError(t, err)
	require.Equal(t, []string{"o1"}, ids)
	require.Equal(t, []int64{expireAt.UnixMilli()}, dueMS)
	ids, _, err = m.Unpaid(t.Context(), "o1", 1)
	require.NoError(t, err)
	require.Equal(t, []string{"o2"}, ids)

	var id, parent, unused int
	var plan string
	require.NoError(t, m.db.QueryRowContext(t.Context(), `EXPLAIN QUERY PLAN
		SELECT order_sn, expire_time FROM oms_order WHERE status = 0 AND expire_time IS NOT NULL AND order_sn > '' ORDER BY order_sn LIMIT 1`).
		Scan(&id, &parent, &unused, &plan))
	require.Equal(t, "SEARCH oms_order USING COVERING INDEX oms_order_unpaid (status=? AND order_sn>?)", plan)
}

package sqlstore_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/order"
)

// SQLite runs one writing transaction at a time. Other databases let a row change between two
// statements of one transaction: the first finds nothing, the next sees what another committed
// since. Here the first such statement is answered as if it had come a moment earlier; the
// operation must look again, not judge by two states.
func TestARowThatChangesBetweenTwoStatementsIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		pay := func(s *shop) (any, error) { return s.Pay(s.t.Context(), payment("p", "o")) }
		for name, c := range map[string]struct {
			prepare func(*shop)
			step    string // the first of this name finds nothing
			run     func(*shop) (any, error)
			want    any
			check   func(*shop)
		}{
			"close: made due by an extension": {
				prepare: func(s *shop) { s.create("o") },
				step:    "exec UPDATE orders",
				run:     func(s *shop) (any, error) { return s.Close(s.t.Context(), "o", due) },
				want:    order.Result{Outcome: order.ClosedNow},
			},
			"abandon: created just now": {
				prepare: func(s *shop) { s.create("o") },
				step:    "exec UPDATE orders",
				run:     func(s *shop) (any, error) { return s.Abandon(s.t.Context(), "o", t0) },
				want:    order.Result{Outcome: order.ClosedNow},
			},
			"pay: created just now": {
				prepare: func(s *shop) { s.create("o") },
				step:    "exec UPDATE orders",
				run:     pay,
				want:    order.PaidNow,
			},
			"pay: the same payment paid just now": {
				prepare: func(s *shop) {
					s.create("o")
					s.pay(payment("p", "o"))
				},
				step: "query SELECT 'order',",
				run:  pay,
				want: order.PaidAlready,
				check: func(s *shop) {
					require.Zero(s.t, s.count(`SELECT COUNT(*) FROM refunds`), "the money that paid it does not go back")
				},
			},
			"pay: the same payment was refunded just now": {
				prepare: func(s *shop) {
					s.create("o")
					s.close("o", due)
					s.pay(payment("p", "o"))
				},
				step:  "query SELECT 'order',",
				run:   pay,
				want:  order.Refunded,
				check: func(s *shop) { require.Equal(s.t, 1, s.count(`SELECT COUNT(*) FROM refunds`)) },
			},
			"pay: the same payment paid another order just now": {
				prepare: func(s *shop) {
					s.create("o")
					s.create("other")
					s.pay(payment("p", "other"))
				},
				step:  "query SELECT 'order',",
				run:   func(s *shop) (any, error) { _, err := pay(s); return nil, requireIs(s, err, order.ErrPaymentReused) },
				check: func(s *shop) { require.Equal(s.t, order.Unpaid, s.status("o")) },
			},
			"pay: the same payment was refunded for another order just now": {
				prepare: func(s *shop) {
					s.create("o")
					s.create("other")
					s.close("other", due)
					s.pay(payment("p", "other"))
				},
				step:  "query SELECT 'order',",
				run:   func(s *shop) (any, error) { _, err := pay(s); return nil, requireIs(s, err, order.ErrPaymentReused) },
				check: func(s *shop) { require.Equal(s.t, order.Unpaid, s.status("o"), "no goods for money that goes back") },
			},
			"pay, for a closed order: the same payment paid another just now": {
				prepare: func(s *shop) {
					s.create("o")
					s.close("o", due)
					s.create("other")
					s.pay(payment("p", "other"))
				},
				step:  "query SELECT 'order',",
				run:   func(s *shop) (any, error) { _, err := pay(s); return nil, requireIs(s, err, order.ErrPaymentReused) },
				check: func(s *shop) { require.Zero(s.t, s.count(`SELECT COUNT(*) FROM refunds`), "no money back for goods") },
			},
			"create: stock came back just now": {
				prepare: func(*shop) {},
				step:    "exec UPDATE sku_stock",
				run:     func(s *shop) (any, error) { return nil, s.Create(s.t.Context(), newOrder("o"), t0) },
			},
			"create: the coupon came back just now": {
				prepare: func(*shop) {},
				step:    "exec UPDATE user_coupons",
				run:     func(s *shop) (any, error) { return nil, s.Create(s.t.Context(), newOrder("o", withCoupon("c1")), t0) },
				check:   func(s *shop) { require.Equal(s.t, "frozen", s.coupon("c1")) },
			},
			"create: the user's first order was placed just now": {
				prepare: func(s *shop) { s.create("p") },
				step:    "exec UPDATE user_unpaid",
				run:     func(s *shop) (any, error) { return nil, s.Create(s.t.Context(), newOrder("o"), t0) },
			},
			"extend: created just now": {
				prepare: func(s *shop) { s.create("o") },
				step:    "exec UPDATE orders",
				run:     func(s *shop) (any, error) { return nil, s.Extend(s.t.Context(), "o", due.Add(time.Hour)) },
				check: func(s *shop) {
					require.Equal(s.t, order.NotYetDue, s.close("o", due).Outcome)
				},
			},
			"add stock: the sku was created just now": {
				prepare: func(*shop) {},
				step:    "exec UPDATE sku_stock",
				run:     func(s *shop) (any, error) { s.addStock("a", 7); return nil, nil },
				check:   func(s *shop) { require.Equal(s.t, [3]int64{107, 0, 0}, s.stock("a")) },
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s, conn := setupFaulty(t, db)
				c.prepare(s)
				var seen atomic.Int64
				conn.arm(faults{blind: func(step string) bool { return step == c.step && seen.Add(1) == 1 }})
				got, err := c.run(s)
				require.NoError(t, err)
				require.Equal(t, c.want, got)
				require.EqualValues(t, 2, min(seen.Load(), 2), "it looked again")
				conn.disarm()
				if c.check != nil {
					c.check(s)
				}
			})
		}
	})
}

func requireIs(s *shop, err, want error) error {
	s.t.Helper()
	require.ErrorIs(s.t, err, want)
	return nil
}

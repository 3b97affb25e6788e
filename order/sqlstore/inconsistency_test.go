package sqlstore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/order"
)

// Something outside the store spoiled the tables: close and pay apply nothing and say what they
// found.
func TestASpoiledOrderIsLeftAloneAndNamed(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		for name, c := range map[string]struct {
			spoil, repair string
			says          []string
		}{
			"units are missing": {
				`UPDATE sku_stock SET lock_stock = 1, stock = stock + 2 WHERE sku_id = 'b'`,
				`UPDATE sku_stock SET lock_stock = 3, stock = stock - 2 WHERE sku_id = 'b'`,
				[]string{`order "o"`, `3 of sku "b"`, "lock_stock is 1"},
			},
			"the ledger has the effect": {
				`INSERT INTO stock_ledger VALUES ('o', 'b', 'release', 3, 0), ('o', 'b', 'sell', 3, 0)`,
				`DELETE FROM stock_ledger WHERE op <> 'lock'`,
				[]string{`order "o"`, `sku "b"`, "stock_ledger has a"},
			},
			"the coupon was unfrozen": {
				`UPDATE user_coupons SET status = 'unused', order_no = NULL`,
				`UPDATE user_coupons SET status = 'frozen', order_no = 'o'`,
				[]string{`coupon "c1" is not frozen by order "o"`, "it is unused"},
			},
			"the coupon is another order's": {
				`UPDATE user_coupons SET order_no = 'x'`,
				`UPDATE user_coupons SET order_no = 'o'`,
				[]string{`coupon "c1" is not frozen by order "o"`, `frozen by order "x"`},
			},
			"the coupon is gone": {
				`DELETE FROM user_coupons`,
				`INSERT INTO user_coupons VALUES ('c1', 'u', 'frozen', 'o', 9999999999999)`,
				[]string{`coupon "c1"`, "no such coupon"},
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := setup(t, db)
				s.create("o", withCoupon("c1"))
				s.exec(c.spoil)
				before := dump(t, s)

				_, closeErr := s.Close(t.Context(), "o", due)
				_, payErr := s.Pay(t.Context(), payment("p", "o"))
				for _, err := range []error{closeErr, payErr} {
					require.ErrorIs(t, err, order.ErrInconsistency)
					for _, says := range c.says {
						require.ErrorContains(t, err, says)
					}
				}
				require.Equal(t, before, dump(t, s), "nothing was changed")

				s.exec(c.repair)
				require.Equal(t, order.ClosedNow, s.close("o", due).Outcome)
			})
		}
	})
}

func TestAnUnpaidOrderWhoseCloseIsLoggedIsLeftAlone(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s := setup(t, db)
		s.create("o")
		s.exec(`INSERT INTO close_log VALUES ('o', 'closed', 'by hand', 0)`)
		before := dump(t, s)
		_, err := s.Close(t.Context(), "o", due)
		require.ErrorIs(t, err, order.ErrInconsistency)
		require.ErrorContains(t, err, `order "o" is unpaid, but the close_log has its close`)
		require.Equal(t, before, dump(t, s))
		s.exec(`DELETE FROM close_log`)
		require.Equal(t, order.ClosedNow, s.close("o", due).Outcome)
	})
}

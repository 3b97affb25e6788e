package sqlstore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/order"
)

func TestPaySellsStockAndUsesTheCoupon(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s := setup(t, db)
		s.create("o", withCoupon("c1"))
		require.Equal(t, order.PaidNow, s.pay(payment("p", "o")))
		require.Equal(t, [3]int64{98, 0, 2}, s.stock("a"))
		require.Equal(t, [3]int64{97, 0, 3}, s.stock("b"))
		require.Equal(t, "used", s.coupon("c1"))
		require.Equal(t, order.Paid, s.status("o"))
		require.Equal(t, t0.Add(time.Minute).UnixMilli(), int64(s.count(`SELECT paid_at FROM orders`)))
	})
}

func TestPayWinsPastExpiryWhileTheOrderIsUnpaid(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s := setup(t, db)
		require.NoError(t, s.AddCoupon(t.Context(), "short", "u", due.Add(-time.Minute)))
		s.create("o", withCoupon("short"))
		p := payment("p", "o")
		p.At = due.Add(time.Hour)
		require.Equal(t, order.PaidNow, s.pay(p))
		require.Equal(t, "used", s.coupon("short"), "the coupon was valid when the order was placed")
		require.Equal(t, order.WasPaid, s.close("o", due.Add(2*time.Hour)).Outcome)
	})
}

func TestThePaymentOfAClosedOrderBecomesARefund(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s := setup(t, db)
		s.create("o", withCoupon("c1"))
		s.close("o", due)
		late := payment("p", "o")
		late.Amount = 499 // whatever came goes back
		require.Equal(t, order.Refunded, s.pay(late))
		require.Equal(t, order.Refunded, s.pay(late), "told twice")
		require.Equal(t, 1, s.count(`SELECT COUNT(*) FROM refunds`))
		require.Equal(t, 499, s.count(`SELECT amount FROM refunds WHERE payment_id = 'p' AND order_no = 'o'`))
		require.Equal(t, "order closed", s.text(`SELECT reason FROM refunds`))
		require.Equal(t, order.Closed, s.status("o"))
		require.Equal(t, "unused", s.coupon("c1"))

		require.Equal(t, order.Refunded, s.pay(payment("p2", "o")), "another payment is another refund")
		require.Equal(t, 2, s.count(`SELECT COUNT(*) FROM refunds`))
	})
}

func TestASecondPaymentOfAPaidOrderBecomesARefund(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s := setup(t, db)
		s.create("o")
		require.Equal(t, order.PaidNow, s.pay(payment("p1", "o")))
		require.Equal(t, order.Refunded, s.pay(payment("p2", "o")))
		require.Equal(t, order.PaidAlready, s.pay(payment("p1", "o")))
		require.Equal(t, order.Refunded, s.pay(payment("p2", "o")))
		require.Equal(t, "order paid by another payment", s.text(`SELECT reason FROM refunds`))
		require.Equal(t, [3]int64{98, 0, 2}, s.stock("a"), "sold once")
	})
}

func TestMoneyThatCannotBeRecordedIsAnError(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s := setup(t, db)
		for _, no := range []string{"open", "paid", "closed"} {
			s.create(no)
		}
		s.pay(payment("p-paid", "paid"))
		s.close("closed", due)
		s.pay(payment("p-closed", "closed"))
		before := dump(t, s)

		amount := func(p order.Payment, n int64) order.Payment { p.Amount = n; return p }
		for name, c := range map[string]struct {
			pay  order.Payment
			want error
			says string
		}{
			"unknown order":                  {payment("p", "none"), order.ErrUnknownOrder, "its 500 are recorded nowhere"},
			"too little":                     {amount(payment("p", "open"), 499), order.ErrWrongAmount, "asks for 500, the payment has 499"},
			"too much":                       {amount(payment("p", "open"), 501), order.ErrWrongAmount, "asks for 500, the payment has 501"},
			"told again with another amount": {amount(payment("p-paid", "paid"), 1), order.ErrWrongAmount, "recorded with 500, now it has 1"},
			"refund told again differently":  {amount(payment("p-closed", "closed"), 1), order.ErrWrongAmount, "recorded with 500"},
			"a payment of another order":     {payment("p-paid", "open"), order.ErrPaymentReused, `order "paid"`},
			"a refund of another order":      {payment("p-closed", "open"), order.ErrPaymentReused, `order "closed"`},
			"paid there, told for closed":    {payment("p-paid", "closed"), order.ErrPaymentReused, `order "paid"`},
			"no id":                          {payment("", "open"), order.ErrInvalid, "ID is"},
		} {
			t.Run(name, func(t *testing.T) {
				_, err := s.Pay(t.Context(), c.pay)
				require.ErrorIs(t, err, c.want)
				require.ErrorContains(t, err, c.says)
				require.Equal(t, before, dump(t, s), "nothing was changed")
			})
		}
	})
}

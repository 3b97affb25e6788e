package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/internal/check"
)

// Pay records money that arrived for an order. The order is paid if it is still unpaid, also past
// its expire_at: then its stock is sold and its coupon used (order.PaidNow). If it was closed, or
// paid by another payment, a refund record is written (order.Refunded). The same payment told again
// changes nothing and gets its old answer (order.PaidAlready or order.Refunded). All in one
// transaction.
//
// After an error nothing is recorded (after order.ErrUnknownOutcome perhaps), but the money is
// there: the caller must not tell the payment provider that it was taken in. Pay may be called
// again after each of them.
//   - order.ErrUnknownOrder: no such order.
//   - order.ErrWrongAmount: the order is unpaid and asks for another amount, or the same payment
//     was recorded with another. A partial or an excess payment is a decision of the application;
//     the order stays unpaid and closes at its time. (For an order that is closed or paid, any
//     amount becomes a refund record.)
//   - order.ErrPaymentReused: the payment id was recorded for another order.
//   - order.ErrInconsistency, order.ErrBusy, order.ErrInvalid; order.ErrUnknownOutcome: call again,
//     it counts once.
func (s *Store) Pay(ctx context.Context, p order.Payment) (order.PayOutcome, error) {
	if err := p.Validate(); err != nil {
		return 0, fmt.Errorf("payment %s of order %s: %w", check.Quote(p.ID), check.Quote(p.OrderNo), err)
	}
	var out order.PayOutcome
	err := s.write(ctx, func(t *tx) (err error) {
		out, err = t.pay(p)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("payment %q of order %q: %w", p.ID, p.OrderNo, err)
	}
	return out, nil
}

func (t *tx) pay(p order.Payment) (order.PayOutcome, error) {
	if out, err := t.recorded(p); err != nil || out != 0 {
		return out, err
	}
	// One payment told for two orders at once would find neither recorded: the key decides.
	if _, err := t.exec(`INSERT INTO payments (payment_id, order_no) VALUES (?, ?)`, p.ID, p.OrderNo); err != nil {
		return 0, t.recordedMeanwhile(err)
	}
	atMS := p.At.UnixMilli()
	n, err := t.exec(`
		UPDATE orders SET status = 'paid', payment_id = ?, paid_at = ?
		WHERE order_no = ? AND status = 'unpaid' AND amount = ?`,
		p.ID, atMS, p.OrderNo, p.Amount)
	if err != nil {
		return 0, t.recordedMeanwhile(err)
	}
	if n == 0 {
		return t.refund(p, atMS)
	}
	r, err := t.row(p.OrderNo)
	if err != nil {
		return 0, err
	}
	if err := t.countDown(r.userID); err != nil {
		return 0, err
	}
	if err := t.settleStock(sellStock, p.OrderNo, atMS); err != nil {
		return 0, err
	}
	if err := t.useCoupon(p.OrderNo, r.couponID); err != nil {
		return 0, err
	}
	return order.PaidNow, nil
}

// recorded finds out whether this payment was told before; 0 when it was not.
func (t *tx) recorded(p order.Payment) (order.PayOutcome, error) {
	var as, orderNo string
	var amount int64
	known, err := t.get(`
		SELECT 'order', order_no, amount FROM orders WHERE payment_id = ?
		UNION ALL
		SELECT 'refund', order_no, amount FROM refunds WHERE payment_id = ?`,
		[]any{p.ID, p.ID}, &as, &orderNo, &amount)
	switch {
	case err != nil || !known:
		return 0, err
	case orderNo != p.OrderNo:
		return 0, fmt.Errorf("%w: it was recorded for order %q", order.ErrPaymentReused, orderNo)
	case amount != p.Amount:
		return 0, fmt.Errorf("%w: it was recorded with %d, now it has %d", order.ErrWrongAmount, amount, p.Amount)
	case as == "refund":
		return order.Refunded, nil
	}
	return order.PaidAlready, nil
}

// refund records that the money of an order that is closed, or paid by another payment, goes back.
func (t *tx) refund(p order.Payment, atMS int64) (order.PayOutcome, error) {
	var status order.Status
	var amount int64
	var paidBy sql.NullString
	known, err := t.get(`SELECT status, amount, payment_id FROM orders WHERE order_no = ?`,
		[]any{p.OrderNo}, &status, &amount, &paidBy)
	switch {
	case err != nil:
		return 0, err
	case !known:
		return 0, fmt.Errorf("%w: its %d are recorded nowhere: give them back, or find the order", order.ErrUnknownOrder, p.Amount)
	case status == order.Unpaid && amount == p.Amount:
		return 0, errMoved // it was created between the two statements
	case paidBy.String == p.ID:
		return 0, errMoved // this same payment, told at the same time, paid it since recorded looked
	case status == order.Unpaid:
		return 0, fmt.Errorf("%w: the order asks for %d, the payment has %d", order.ErrWrongAmount, amount, p.Amount)
	}
	reason := "order closed"
	if status == order.Paid {
		reason = "order paid by another payment"
	}
	_, err = t.exec(`INSERT INTO refunds (payment_id, order_no, amount, reason, at) VALUES (?, ?, ?, ?, ?)`,
		p.ID, p.OrderNo, p.Amount, reason, atMS)
	return order.Refunded, t.recordedMeanwhile(err)
}

// recordedMeanwhile turns a duplicate payment id into another look: another transaction recorded
// the same payment after this one had looked for it.
func (t *tx) recordedMeanwhile(err error) error {
	if err != nil && t.dialect.Duplicate(err) {
		return errMoved
	}
	return err
}

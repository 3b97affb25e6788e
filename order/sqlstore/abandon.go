package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/internal/check"
)

// Abandon closes an unpaid order because its user gives it up, whatever its expire_at, also where
// it has none. Stock, coupon and answers are those of Close; the reason is order.Abandoned, and now
// becomes closed_at. Cancel the order's task after it; a task that fires all the same finds the
// order closed.
//
// A payment that is under way becomes a refund when it arrives. Abandon may be called again after
// any error, which are those of Close.
func (s *Store) Abandon(ctx context.Context, orderNo string, now time.Time) (order.Result, error) {
	var f check.Faults
	f.Instant("now", now)
	if err := f.Err(order.ErrInvalid); err != nil {
		return order.Result{}, fmt.Errorf("abandon order %q: %w", orderNo, err)
	}
	if !check.Fits(orderNo) {
		return order.Result{Outcome: order.NotFound}, nil
	}
	var res order.Result
	err := s.write(ctx, func(t *tx) (err error) {
		res, err = t.abandon(orderNo, now.UnixMilli())
		return err
	})
	if err != nil {
		return order.Result{}, fmt.Errorf("abandon order %q: %w", orderNo, err)
	}
	if res.Outcome == order.ClosedNow {
		s.closed(ctx, orderNo, order.Abandoned)
	}
	return res, nil
}

func (t *tx) abandon(orderNo string, nowMS int64) (order.Result, error) {
	n, err := t.exec(`
		UPDATE orders SET status = 'closed', close_reason = ?, closed_at = ?
		WHERE order_no = ? AND status = 'unpaid'`,
		string(order.Abandoned), nowMS, orderNo)
	if err != nil {
		return order.Result{}, err
	}
	if n > 0 {
		return t.giveBack(orderNo, order.Abandoned, nowMS)
	}
	res, err := t.whyNotClosed(orderNo, nowMS)
	if err == nil && res.Outcome == order.NotYetDue {
		return order.Result{}, errMoved // it was created between the two statements
	}
	return res, err
}

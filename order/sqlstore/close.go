package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/internal/check"
)

// Close closes an order that is unpaid and expires at now or before, and gives its stock and its
// coupon back, in one transaction. For any other order it changes nothing and says why: paid,
// closed already, not yet due, unknown, held back (see Options.Ask). These answers are no errors.
// now is the engine's clock (Task.Now), rounded down to the millisecond; it becomes closed_at.
//
// Close is safe to repeat and to run many times at once: one call closes, the others answer
// order.ClosedAlready.
//
// Errors: order.ErrInconsistency when the stock or the coupon is not as the order left it, with the
// figures; order.ErrBusy; order.ErrUnknownOutcome; order.ErrInvalid for an impossible now. After
// every one but ErrUnknownOutcome nothing is applied, and after every one Close may be called
// again.
func (s *Store) Close(ctx context.Context, orderNo string, now time.Time) (order.Result, error) {
	var f check.Faults
	f.Instant("now", now)
	if err := f.Err(order.ErrInvalid); err != nil {
		return order.Result{}, fmt.Errorf("close order %q: %w", orderNo, err)
	}
	if !check.Fits(orderNo) {
		return order.Result{Outcome: order.NotFound}, nil
	}
	_, answered, err := s.screen(ctx, []string{orderNo}, now)
	if err != nil {
		return order.Result{}, fmt.Errorf("close order %q: %w", orderNo, err)
	}
	if res, ok := answered[orderNo]; ok {
		return res, nil
	}
	return s.closeOne(ctx, orderNo, now, always)
}

// closeOne closes an order that nothing holds back.
func (s *Store) closeOne(ctx context.Context, orderNo string, now time.Time, patience time.Duration) (order.Result, error) {
	var res order.Result
	err := s.writeFor(ctx, patience, func(t *tx) (err error) {
		res, err = t.close(orderNo, now.UnixMilli())
		return err
	})
	if err != nil {
		return order.Result{}, fmt.Errorf("close order %q: %w", orderNo, err)
	}
	if res.Outcome == order.ClosedNow {
		s.closed(ctx, orderNo, order.Timeout)
	}
	return res, nil
}

// close is the transaction of the package comment. Its first statement decides; what follows
// happens only to the one call whose statement changed the row.
func (t *tx) close(orderNo string, nowMS int64) (order.Result, error) {
	n, err := t.exec(`
		UPDATE orders SET status = 'closed', close_reason = ?, closed_at = ?
		WHERE order_no = ? AND status = 'unpaid' AND expire_at <= ?`,
		string(order.Timeout), nowMS, orderNo, nowMS)
	if err != nil {
		return order.Result{}, err
	}
	if n == 0 {
		return t.whyNotClosed(orderNo, nowMS)
	}
	return t.giveBack(orderNo, order.Timeout, nowMS)
}

// giveBack is what a close does once the order is closed.
func (t *tx) giveBack(orderNo string, reason order.Reason, nowMS int64) (order.Result, error) {
	r, err := t.row(orderNo)
	if err != nil {
		return order.Result{}, err
	}
	if err := t.countDown(r.userID); err != nil {
		return order.Result{}, err
	}
	if err := t.settleStock(releaseStock, orderNo, nowMS); err != nil {
		return order.Result{}, err
	}
	if err := t.unfreezeCoupon(orderNo, r.couponID, nowMS); err != nil {
		return order.Result{}, err
	}
	if err := t.logClose(orderNo, reason, nowMS); err != nil {
		return order.Result{}, err
	}
	if err := t.post([]string{orderNo}, reason, nowMS); err != nil {
		return order.Result{}, err
	}
	return order.Result{Outcome: order.ClosedNow}, nil
}

func (t *tx) logClose(orderNo string, reason order.Reason, nowMS int64) error {
	_, err := t.exec(`INSERT INTO close_log (order_no, result, reason, at) VALUES (?, 'closed', ?, ?)`,
		orderNo, string(reason), nowMS)
	if err != nil && t.dialect.Duplicate(err) {
		return fmt.Errorf("%w: order %q is unpaid, but the close_log has its close: %w", order.ErrInconsistency, orderNo, err)
	}
	return err
}

func (t *tx) whyNotClosed(orderNo string, nowMS int64) (order.Result, error) {
	r, err := t.row(orderNo)
	if err != nil {
		return order.Result{}, err
	}
	res, due := r.look(nowMS)
	if due {
		return order.Result{}, errMoved // it was created, or its expire_at moved back, between the two statements
	}
	return res, nil
}

func (t *tx) row(orderNo string) (row, error) {
	rows, err := t.query(selectRows+in(1), orderNo)
	if err != nil {
		return row{}, err
	}
	found, err := scanRows(rows)
	return found[orderNo], err
}

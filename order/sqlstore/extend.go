package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/internal/check"
)

// Extend moves the expire_at of an unpaid order, rounded up to the millisecond; earlier is allowed.
// Call it before the engine's Schedule with the same instant: a close that comes in between finds
// the order not yet due. After order.ErrUnknownOutcome call it again.
//
// Errors: order.ErrUnknownOrder, order.ErrNotUnpaid (it was paid or closed before),
// order.ErrInvalid, order.ErrBusy.
func (s *Store) Extend(ctx context.Context, orderNo string, expireAt time.Time) error {
	var f check.Faults
	f.Instant("expireAt", expireAt)
	if err := f.Err(order.ErrInvalid); err != nil {
		return fmt.Errorf("extend order %q: %w", orderNo, err)
	}
	if !check.Fits(orderNo) {
		return fmt.Errorf("extend order %s: %w", check.Quote(orderNo), order.ErrUnknownOrder)
	}
	err := s.write(ctx, func(t *tx) error { return t.extend(orderNo, order.CeilMS(expireAt)) })
	if err != nil {
		return fmt.Errorf("extend order %q: %w", orderNo, err)
	}
	return nil
}

func (t *tx) extend(orderNo string, expireMS int64) error {
	n, err := t.exec(`
		UPDATE orders SET expire_at = ?
		WHERE order_no = ? AND status = 'unpaid' AND (expire_at IS NULL OR expire_at <> ?)`,
		expireMS, orderNo, expireMS)
	if err != nil || n > 0 {
		return err
	}
	var status order.Status
	var have sql.NullInt64
	known, err := t.get(`SELECT status, expire_at FROM orders WHERE order_no = ?`, []any{orderNo}, &status, &have)
	switch {
	case err != nil:
		return err
	case !known:
		return order.ErrUnknownOrder
	case status != order.Unpaid:
		return fmt.Errorf("%w: it is %s", order.ErrNotUnpaid, status)
	case !have.Valid || have.Int64 != expireMS:
		return errMoved
	}
	return nil // it stands there already
}

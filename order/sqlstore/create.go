package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/internal/check"
)

// Create places an order: unpaid, its stock locked, its coupon frozen, in one transaction.
// expire_at is rounded up to the millisecond. now is the time of creation, by which the coupon must
// be valid. Schedule the order with the engine first, and cancel it when Create fails
// with anything but these two:
//   - order.ErrUnknownOutcome: it may stand. Call again with the same order, and nil or
//     order.ErrDuplicate both mean that it stands.
//   - order.ErrDuplicate: an order of that number stands, and the task is its own. Where it is
//     unpaid, schedule it again by its own expire_at (see Find).
//
// Other errors: order.ErrInvalid (every fault at once), order.ErrOutOfStock (names the sku and what is
// left), order.ErrCoupon (says why), order.ErrTooManyUnpaid (names count and limit; see
// Options.MaxUnpaid), order.ErrBusy.
func (s *Store) Create(ctx context.Context, o order.Order, now time.Time) error {
	if err := o.Validate(); err != nil {
		return fmt.Errorf("create order %s: %w", check.Quote(o.No), err)
	}
	var f check.Faults
	f.Instant("now", now)
	if err := f.Err(order.ErrInvalid); err != nil {
		return fmt.Errorf("create order %q: %w", o.No, err)
	}
	if err := s.write(ctx, func(t *tx) error { return t.create(o, now.UnixMilli()) }); err != nil {
		return fmt.Errorf("create order %q: %w", o.No, err)
	}
	return nil
}

func (t *tx) create(o order.Order, nowMS int64) error {
	_, err := t.exec(`
		INSERT INTO orders (order_no, user_id, status, expire_at, amount, coupon_id, created_at)
		VALUES (?, ?, 'unpaid', ?, ?, ?, ?)`,
		o.No, o.UserID, nullMS(o.ExpireAt), o.Amount, sql.NullString{String: o.CouponID, Valid: o.CouponID != ""}, nowMS)
	if err != nil {
		if t.dialect.Duplicate(err) {
			return fmt.Errorf("%w: %w", order.ErrDuplicate, err)
		}
		return err
	}
	if err := t.countUp(o.UserID); err != nil {
		return err
	}
	for _, it := range sortedItems(o.Items) {
		if err := t.createItem(o.No, it, nowMS); err != nil {
			return err
		}
	}
	if o.CouponID == "" {
		return nil
	}
	return t.freezeCoupon(o, nowMS)
}

func (t *tx) createItem(orderNo string, it order.Item, nowMS int64) error {
	short, err := t.move(lockStock, orderNo, it, nowMS)
	switch {
	case err != nil:
		return err
	case short != nil && !short.known:
		return fmt.Errorf("%w: there is no sku %q", order.ErrOutOfStock, it.SKU)
	case short != nil && short.have >= it.Quantity:
		return errMoved // it was delivered, or given back, between the two statements
	case short != nil:
		return fmt.Errorf("%w: sku %q has %d, the order asks for %d", order.ErrOutOfStock, it.SKU, short.have, it.Quantity)
	}
	_, err = t.exec(`INSERT INTO order_items (order_no, sku_id, quantity) VALUES (?, ?, ?)`, orderNo, it.SKU, it.Quantity)
	return err
}

// nullMS is an expire_at as it is stored: rounded up, NULL for never.
func nullMS(t time.Time) sql.NullInt64 {
	if t.IsZero() {
		return sql.NullInt64{}
	}
	return sql.NullInt64{Int64: order.CeilMS(t), Valid: true}
}

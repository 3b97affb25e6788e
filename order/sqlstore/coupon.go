package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/internal/check"
)

// AddCoupon gives a user an unused coupon that may be put on an order before expireAt (rounded up
// to the millisecond). order.ErrDuplicate is returned when the id exists, order.ErrInvalid for
// unfit arguments.
func (s *Store) AddCoupon(ctx context.Context, couponID, userID string, expireAt time.Time) error {
	var f check.Faults
	f.ID("couponID", couponID)
	f.ID("userID", userID)
	f.Instant("expireAt", expireAt)
	if err := f.Err(order.ErrInvalid); err != nil {
		return fmt.Errorf("add coupon: %w", err)
	}
	err := s.write(ctx, func(t *tx) error {
		_, err := t.exec(`INSERT INTO user_coupons (coupon_id, user_id, status, expire_at) VALUES (?, ?, 'unused', ?)`,
			couponID, userID, order.CeilMS(expireAt))
		if err != nil && t.dialect.Duplicate(err) {
			return fmt.Errorf("%w: %w", order.ErrDuplicate, err)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("add coupon %q: %w", couponID, err)
	}
	return nil
}

// freezeCoupon reserves a coupon for an order; order.ErrCoupon says why it cannot be.
func (t *tx) freezeCoupon(o order.Order, nowMS int64) error {
	n, err := t.exec(`
		UPDATE user_coupons SET status = 'frozen', order_no = ?
		WHERE coupon_id = ? AND user_id = ? AND status = 'unused' AND expire_at > ?`,
		o.No, o.CouponID, o.UserID, nowMS)
	if err != nil || n > 0 {
		return err
	}
	c, err := t.coupon(o.CouponID)
	if err != nil {
		return err
	}
	why := c.state()
	switch {
	case c.status == "":
	case c.userID != o.UserID:
		why = "it belongs to another user"
	case c.status == "unused" && c.expireMS <= nowMS:
		why = fmt.Sprintf("it expired at %s", time.UnixMilli(c.expireMS).UTC().Format(time.RFC3339Nano))
	case c.status == "unused":
		return errMoved
	}
	return fmt.Errorf("%w: coupon %q of user %q: %s", order.ErrCoupon, o.CouponID, o.UserID, why)
}

// unfreezeCoupon gives the coupon of a closed order back, where it has one: unused, or expired
// where the coupon's own validity is over.
func (t *tx) unfreezeCoupon(orderNo string, id sql.NullString, nowMS int64) error {
	return t.settleCoupon(orderNo, id, `
		UPDATE user_coupons SET status = CASE WHEN expire_at <= ? THEN 'expired' ELSE 'unused' END, order_no = NULL
		WHERE coupon_id = ? AND status = 'frozen' AND order_no = ?`, nowMS)
}

// useCoupon spends the coupon of a paid order, where it has one. It does not matter that its
// validity may be over by now: it was not when the order was placed.
func (t *tx) useCoupon(orderNo string, id sql.NullString) error {
	return t.settleCoupon(orderNo, id, `
		UPDATE user_coupons SET status = 'used'
		WHERE coupon_id = ? AND status = 'frozen' AND order_no = ?`)
}

// settleCoupon runs update, whose last arguments are the coupon and the order. What the order froze
// must be there.
func (t *tx) settleCoupon(orderNo string, id sql.NullString, update string, args ...any) error {
	if !id.Valid {
		return nil
	}
	n, err := t.exec(update, append(args, id.String, orderNo)...)
	if err != nil || n > 0 {
		return err
	}
	c, err := t.coupon(id.String)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: coupon %q is not frozen by order %q: %s", order.ErrInconsistency, id.String, orderNo, c.state())
}

type coupon struct {
	userID, status string // status is empty when there is no such coupon
	orderNo        sql.NullString
	expireMS       int64
}

func (t *tx) coupon(id string) (c coupon, err error) {
	_, err = t.get(`SELECT user_id, status, order_no, expire_at FROM user_coupons WHERE coupon_id = ?`,
		[]any{id}, &c.userID, &c.status, &c.orderNo, &c.expireMS)
	return c, err
}

func (c coupon) state() string {
	switch {
	case c.status == "":
		return "there is no such coupon"
	case c.orderNo.Valid:
		return fmt.Sprintf("it is %s by order %q", c.status, c.orderNo.String)
	}
	return "it is " + c.status
}

package sqlstore

import (
	"fmt"
	"math"

	"github.com/orderwheel/orderwheel/order"
)

// user_unpaid has each user's number of unpaid orders, so that Create can bound it: two calls at
// once wait for each other at the user's row, which a COUNT over the orders would not do.
//
// Every transaction takes its rows in this order: orders, user_unpaid, sku_stock, user_coupons. So
// no two wait for each other, and the rows that most of them want are held for the shortest time.

// countUp notes a new unpaid order; order.ErrTooManyUnpaid says that there are too many.
func (t *tx) countUp(userID string) error {
	limit := int64(math.MaxInt64)
	if t.opts.MaxUnpaid > 0 {
		limit = int64(t.opts.MaxUnpaid)
	}
	n, err := t.exec(`UPDATE user_unpaid SET unpaid = unpaid + 1 WHERE user_id = ? AND unpaid < ?`, userID, limit)
	if err != nil || n > 0 {
		return err
	}
	var have int64
	known, err := t.get(`SELECT unpaid FROM user_unpaid WHERE user_id = ?`, []any{userID}, &have)
	switch {
	case err != nil:
		return err
	case known && have >= limit:
		return fmt.Errorf("%w: user %q has %d, the limit is %d", order.ErrTooManyUnpaid, userID, have, limit)
	case known:
		return errMoved // it was created, or went down, between the two statements
	}
	_, err = t.exec(`INSERT INTO user_unpaid (user_id, unpaid) VALUES (?, 1)`, userID)
	if err != nil && t.dialect.Duplicate(err) {
		return errMoved // another order of the user created it in between
	}
	return err
}

// countDown notes that an order is unpaid no more. A count that is wrong, because something else
// wrote to the tables, holds up no close: no stock and no money depends on it.
func (t *tx) countDown(userID string) error {
	_, err := t.exec(`UPDATE user_unpaid SET unpaid = unpaid - 1 WHERE user_id = ? AND unpaid > 0`, userID)
	return err
}

package sqlstore

import (
	"fmt"
	"maps"
	"slices"

	"github.com/orderwheel/orderwheel/order"
)

// closeMany is the transaction of Close for many orders at once, each step a statement or two for
// all of them. It takes the rows in the order in which every transaction does. The answers lack
// what is not there, or locked by others. When anything is not as it must be, it fails as a whole.
func (t *tx) closeMany(nos []string, nowMS int64) (map[string]order.Result, error) {
	rows, err := t.query(selectRows+in(len(nos))+` ORDER BY order_no`+t.locking(skipLocked), anys(nos)...)
	if err != nil {
		return nil, err
	}
	found, err := scanRows(rows)
	if err != nil {
		return nil, err
	}
	answers := map[string]order.Result{}
	due := map[string]row{}
	for no, r := range found {
		res, isDue := r.look(nowMS)
		if isDue {
			due[no] = r
			res.Outcome = order.ClosedNow
		}
		answers[no] = res
	}
	if len(due) == 0 {
		return answers, nil
	}
	return answers, t.closeSet(due, nowMS)
}

type lockMode string

const (
	wait       lockMode = " FOR UPDATE"
	skipLocked lockMode = " FOR UPDATE SKIP LOCKED"
)

// locking is the clause that locks what a SELECT reads.
func (t *tx) locking(m lockMode) string {
	if t.dialect.SingleWriter() {
		return "" // this transaction has the only lock there is
	}
	return string(m)
}

// closeSet closes orders that are unpaid and due, and whose rows this transaction has locked.
func (t *tx) closeSet(due map[string]row, nowMS int64) error {
	nos := slices.Sorted(maps.Keys(due))
	n, err := t.exec(`
		UPDATE orders SET status = 'closed', close_reason = ?, closed_at = ?
		WHERE status = 'unpaid' AND expire_at <= ? AND order_no IN `+in(len(nos)),
		anys(nos, string(order.Timeout), nowMS, nowMS)...)
	if err != nil {
		return err
	}
	if n != int64(len(nos)) {
		return fmt.Errorf("%w: %d of %d locked orders were closed", order.ErrInconsistency, n, len(nos))
	}
	for _, step := range []func() error{
		func() error { return t.countDownSet(due) },
		func() error { return t.releaseSet(nos) },
		func() error { return t.unfreezeSet(nos, due, nowMS) },
		func() error { return t.logSet(nos, nowMS) },
		func() error { return t.post(nos, order.Timeout, nowMS) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// countDownSet is countDown for each of due.
func (t *tx) countDownSet(due map[string]row) error {
	fewer := map[string]int64{} // by user
	for _, r := range due {
		fewer[r.userID]++
	}
	users := slices.Sorted(maps.Keys(fewer))
	if err := t.lockUsers(users); err != nil {
		return err
	}
	byFewer := map[int64][]string{}
	for _, u := range users {
		byFewer[fewer[u]] = append(byFewer[fewer[u]], u)
	}
	for n, users := range byFewer {
		_, err := t.exec(`
			UPDATE user_unpaid SET unpaid = CASE WHEN unpaid > ? THEN unpaid - ? ELSE 0 END
			WHERE unpaid > 0 AND user_id IN `+in(len(users)), anys(users, n, n)...)
		if err != nil {
			return err
		}
	}
	return nil
}

// lockUsers locks the rows of users, in their order. An UPDATE with a list takes them in an order
// of its own.
func (t *tx) lockUsers(users []string) error {
	if len(users) == 1 || t.locking(wait) == "" {
		return nil
	}
	rows, err := t.query(`SELECT user_id FROM user_unpaid WHERE user_id IN `+in(len(users))+` ORDER BY user_id`+t.locking(wait), anys(users)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() { // some databases lock a row when it is read
	}
	return rows.Err()
}

// releaseSet gives back what the orders have locked, sku by sku, with their rows of the ledger.
func (t *tx) releaseSet(nos []string) error {
	total, err := t.totals(nos)
	if err != nil {
		return err
	}
	for _, it := range total {
		n, err := t.exec(releaseStock.update, it.Quantity, it.Quantity, it.SKU, it.Quantity)
		if err != nil {
			return err
		}
		if n == 0 {
			return fmt.Errorf("%w: %d orders locked %d of sku %q, but its lock_stock is less",
				order.ErrInconsistency, len(nos), it.Quantity, it.SKU)
		}
	}
	_, err = t.exec(`
		INSERT INTO stock_ledger (order_no, sku_id, op, quantity, at)
		SELECT i.order_no, i.sku_id, 'release', i.quantity, o.closed_at
		FROM order_items i JOIN orders o ON o.order_no = i.order_no
		WHERE o.order_no IN `+in(len(nos)), anys(nos)...)
	return err
}

// totals sums the lines of the orders up, in the order of sku.
func (t *tx) totals(nos []string) ([]order.Item, error) {
	rows, err := t.query(`SELECT sku_id, quantity FROM order_items WHERE order_no IN `+in(len(nos)), anys(nos)...)
	if err != nil {
		return nil, err
	}
	lines, err := scanItems(rows)
	if err != nil {
		return nil, err
	}
	var total []order.Item
	for _, it := range lines { // sorted by sku
		if last := len(total) - 1; last >= 0 && total[last].SKU == it.SKU {
			total[last].Quantity += it.Quantity
		} else {
			total = append(total, it)
		}
	}
	return total, nil
}

// unfreezeSet is unfreezeCoupon for each of due that has a coupon.
func (t *tx) unfreezeSet(nos []string, due map[string]row, nowMS int64) error {
	var coupons []string
	for _, r := range due {
		if r.couponID.Valid {
			coupons = append(coupons, r.couponID.String)
		}
	}
	if len(coupons) == 0 {
		return nil
	}
	slices.Sort(coupons)
	n, err := t.exec(`
		UPDATE user_coupons SET status = CASE WHEN expire_at <= ? THEN 'expired' ELSE 'unused' END, order_no = NULL
		WHERE status = 'frozen' AND coupon_id IN `+in(len(coupons))+` AND order_no IN `+in(len(nos))+`
			AND EXISTS (SELECT 1 FROM orders o WHERE o.order_no = user_coupons.order_no AND o.coupon_id = user_coupons.coupon_id)`,
		anys(nos, anys(coupons, nowMS)...)...)
	if err != nil {
		return err
	}
	if n != int64(len(coupons)) {
		return fmt.Errorf("%w: %d of %d coupons are frozen by their orders", order.ErrInconsistency, n, len(coupons))
	}
	return nil
}

// logSet is logClose for each of nos.
func (t *tx) logSet(nos []string, nowMS int64) error {
	var args []any
	for _, no := range nos {
		args = append(args, no, string(order.Timeout), nowMS)
	}
	_, err := t.exec(`INSERT INTO close_log (order_no, result, reason, at) VALUES `+repeated("(?, 'closed', ?, ?)", len(nos)), args...)
	return err
}

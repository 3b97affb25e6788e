package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/orderwheel/orderwheel/examples/internal/local"
	"github.com/orderwheel/orderwheel/order"
)

// The states of oms_order.status.
const (
	toBePaid    = 0
	toBeShipped = 1
	shipped     = 2
	completed   = 3
	closed      = 4
)

// mall is an app with tables of its own. Close is all that the engine needs of it; Unpaid is for
// Config.Source.
type mall struct{ db *sql.DB }

var _ order.Closer = mall{}

// Close closes an order that is to be paid and expires at now or before, and gives its stock back, in
// one transaction.
func (m mall) Close(ctx context.Context, orderSN string, now time.Time) (res order.Result, err error) {
	err = local.InTx(ctx, m.db, func(tx *sql.Tx) error {
		// The statement that changes the state tests it. Cut down to the second, now is never too
		// late for an expire_time that was rounded up.
		n, err := local.Changed(tx.ExecContext(ctx,
			`UPDATE oms_order SET status = ?, close_time = ? WHERE order_sn = ? AND status = ? AND expire_time <= ?`,
			closed, datetime(now), orderSN, toBePaid, datetime(now)))
		if err != nil {
			return err
		}
		if n == 0 {
			res, err = m.whyNot(ctx, tx, orderSN)
			return err
		}
		// Only the call that changed the row comes here.
		res = order.Result{Outcome: order.ClosedNow}
		return release(ctx, tx, orderSN)
	})
	if err != nil {
		return order.Result{}, fmt.Errorf("close order %q: %w", orderSN, err)
	}
	return res, nil
}

// whyNot reads what an order is that was not closed.
func (m mall) whyNot(ctx context.Context, tx *sql.Tx, orderSN string) (order.Result, error) {
	var status int
	var expire sql.NullTime
	err := tx.QueryRowContext(ctx, `SELECT status, expire_time FROM oms_order WHERE order_sn = ?`, orderSN).Scan(&status, &expire)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return order.Result{Outcome: order.NotFound}, nil
	case err != nil:
		return order.Result{}, err
	}
	switch status {
	case toBePaid:
		return order.Result{Outcome: order.NotYetDue, ExpireAt: expire.Time}, nil // zero: never
	case toBeShipped, shipped, completed:
		return order.Result{Outcome: order.WasPaid}, nil
	case closed:
		return order.Result{Outcome: order.ClosedAlready}, nil
	}
	return order.Result{}, fmt.Errorf("its status is %d: give one of 0 to 4", status)
}

// release gives the stock of an order back, in the order of sku, as every transaction takes it: so
// no two wait for each other.
func release(ctx context.Context, tx *sql.Tx, orderSN string) error {
	items, err := itemsOf(ctx, tx, orderSN)
	if err != nil {
		return err
	}
	for _, it := range items {
		n, err := local.Changed(tx.ExecContext(ctx,
			`UPDATE pms_sku_stock SET lock_stock = lock_stock - ? WHERE sku_code = ? AND lock_stock >= ?`, it.quantity, it.sku, it.quantity))
		if err != nil {
			return err
		}
		if n == 0 {
			return fmt.Errorf("%w: sku %q has less than %d locked", order.ErrInconsistency, it.sku, it.quantity)
		}
	}
	return nil
}

// Unpaid reads the orders to be paid, page by page, so that the engine can bring back what Redis has
// lost: one range of an index.
func (m mall) Unpaid(ctx context.Context, after string, limit int) (ids []string, dueMS []int64, err error) {
	rows, err := m.db.QueryContext(ctx, `
		SELECT order_sn, expire_time FROM oms_order
		WHERE status = ? AND expire_time IS NOT NULL AND order_sn > ?
		ORDER BY order_sn LIMIT ?`, toBePaid, after, limit)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		var expire time.Time
		if err := rows.Scan(&id, &expire); err != nil {
			return nil, nil, err
		}
		ids, dueMS = append(ids, id), append(dueMS, expire.UnixMilli())
	}
	return ids, dueMS, rows.Err()
}

// datetime is an instant as such a column holds it, cut down to the second. (Given a time.Time, MySQL
// would round to the nearest second: half of the orders would close early. What it reads back is UTC
// with the DSN's parseTime=true&loc=UTC.)
func datetime(t time.Time) string { return t.UTC().Format(time.DateTime) }

// ceilSecond is what expire_time must hold, and what Schedule must be given: rounded up, so that
// nothing closes early. An order closes up to a second later for it.
func ceilSecond(t time.Time) time.Time {
	if s := t.Truncate(time.Second); s.Before(t) {
		return s.Add(time.Second)
	}
	return t
}

package main

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/orderwheel/orderwheel/examples/internal/local"
	"github.com/orderwheel/orderwheel/order"
)

// The rest of the app: what such a mall has already. Every transaction begins with the statement
// that decides.

type item struct {
	sku      string
	quantity int
}

// place creates an order and locks its stock. expireAt has whole seconds.
func (m mall) place(ctx context.Context, orderSN string, items []item, amount int64, now, expireAt time.Time) error {
	err := local.InTx(ctx, m.db, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx,
			`INSERT INTO oms_order (order_sn, member_id, status, pay_amount, create_time, expire_time) VALUES (?, 1, ?, ?, ?, ?)`,
			orderSN, toBePaid, amount, datetime(now), datetime(expireAt))
		if err != nil {
			return err
		}
		for _, it := range slices.SortedFunc(slices.Values(items), func(a, b item) int { return strings.Compare(a.sku, b.sku) }) {
			n, err := local.Changed(tx.ExecContext(ctx,
				`UPDATE pms_sku_stock SET lock_stock = lock_stock + ? WHERE sku_code = ? AND stock - lock_stock >= ?`, it.quantity, it.sku, it.quantity))
			if err != nil {
				return err
			}
			if n == 0 {
				return fmt.Errorf("%w: sku %q", order.ErrOutOfStock, it.sku)
			}
			_, err = tx.ExecContext(ctx, `INSERT INTO oms_order_item VALUES (?, ?, ?)`, orderSN, it.sku, it.quantity)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("place order %q: %w", orderSN, err)
	}
	return nil
}

// pay pays an order and takes its stock off. False: it is not to be paid any more, and the money
// has to go back.
func (m mall) pay(ctx context.Context, orderSN string, now time.Time) (paid bool, err error) {
	err = local.InTx(ctx, m.db, func(tx *sql.Tx) error {
		n, err := local.Changed(tx.ExecContext(ctx, `UPDATE oms_order SET status = ?, payment_time = ? WHERE order_sn = ? AND status = ?`,
			toBeShipped, datetime(now), orderSN, toBePaid))
		if err != nil || n == 0 {
			return err
		}
		paid = true
		items, err := itemsOf(ctx, tx, orderSN)
		if err != nil {
			return err
		}
		for _, it := range items {
			_, err := tx.ExecContext(ctx, `UPDATE pms_sku_stock SET stock = stock - ?, lock_stock = lock_stock - ? WHERE sku_code = ?`,
				it.quantity, it.quantity, it.sku)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("pay order %q: %w", orderSN, err)
	}
	return paid, nil
}

func itemsOf(ctx context.Context, tx *sql.Tx, orderSN string) ([]item, error) {
	rows, err := tx.QueryContext(ctx, `SELECT sku_code, product_quantity FROM oms_order_item WHERE order_sn = ? ORDER BY sku_code`, orderSN)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var items []item
	for rows.Next() {
		var it item
		if err := rows.Scan(&it.sku, &it.quantity); err != nil {
			return nil, err
		}
		items = append(items, it)
	}
	return items, rows.Err()
}

// tally counts what there is.
type tally struct{ toBePaid, paid, closed, stock, locked int }

func (t tally) String() string {
	return fmt.Sprintf("%d to be paid, %d paid, %d closed; stock %d, of which %d locked", t.toBePaid, t.paid, t.closed, t.stock, t.locked)
}

func (m mall) tally(ctx context.Context) (t tally, err error) {
	err = m.db.QueryRowContext(ctx, `
		SELECT count(*) FILTER (WHERE status = 0), count(*) FILTER (WHERE status BETWEEN 1 AND 3), count(*) FILTER (WHERE status = 4),
			(SELECT sum(stock) FROM pms_sku_stock), (SELECT sum(lock_stock) FROM pms_sku_stock)
		FROM oms_order`).Scan(&t.toBePaid, &t.paid, &t.closed, &t.stock, &t.locked)
	return t, err
}

package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/internal/check"
)

// Find reads an order and its state; its items are in the order of sku. order.ErrUnknownOrder is
// returned when there is none.
func (s *Store) Find(ctx context.Context, orderNo string) (order.Order, order.Status, error) {
	if !check.Fits(orderNo) {
		return order.Order{}, "", fmt.Errorf("find order %s: %w", check.Quote(orderNo), order.ErrUnknownOrder)
	}
	var o order.Order
	var status order.Status
	err := s.retry(ctx, func() (err error) {
		o, status, err = s.find(ctx, orderNo)
		return err
	})
	if err != nil {
		return order.Order{}, "", fmt.Errorf("find order %q: %w", orderNo, err)
	}
	return o, status, nil
}

// find needs no transaction: the lines of an order are written with it and never change.
func (s *Store) find(ctx context.Context, orderNo string) (order.Order, order.Status, error) {
	o := order.Order{No: orderNo}
	var status order.Status
	var couponID sql.NullString
	var expireMS sql.NullInt64
	err := s.db.QueryRowContext(ctx, s.dialect.Rebind(
		`SELECT user_id, status, expire_at, amount, coupon_id FROM orders WHERE order_no = ?`), orderNo).
		Scan(&o.UserID, &status, &expireMS, &o.Amount, &couponID)
	if errors.Is(err, sql.ErrNoRows) {
		return o, "", order.ErrUnknownOrder
	}
	if err != nil {
		return o, "", err
	}
	o.CouponID, o.ExpireAt = couponID.String, expireTime(expireMS)
	rows, err := s.db.QueryContext(ctx, s.dialect.Rebind(itemsOf), orderNo)
	if err != nil {
		return o, "", err
	}
	o.Items, err = scanItems(rows)
	return o, status, err
}

const itemsOf = `SELECT sku_id, quantity FROM order_items WHERE order_no = ?`

// scanItems reads the lines of an order and sorts them by the bytes of sku, whatever the database's
// collation says.
func scanItems(rows *sql.Rows) ([]order.Item, error) {
	defer rows.Close()
	var items []order.Item
	for rows.Next() {
		var it order.Item
		if err := rows.Scan(&it.SKU, &it.Quantity); err != nil {
			return nil, err
		}
		items = append(items, it)
	}
	slices.SortFunc(items, bySKU)
	return items, rows.Err()
}

// Unpaid reads a page of the orders that are unpaid and have an expire_at, in the order of
// order_no: up to limit with a number greater than after ("" begins; the last id of a page is the
// next after; a short page is the last). dueMS[i] is the expire_at of ids[i] in Unix milliseconds.
// Orders created behind the cursor while it moves are left to the next round.
func (s *Store) Unpaid(ctx context.Context, after string, limit int) (ids []string, dueMS []int64, err error) {
	ids, dueMS, err = s.page(ctx, `
		SELECT order_no, expire_at FROM `+s.dialect.Indexed("orders", "orders_unpaid")+`
		WHERE status = 'unpaid' AND expire_at IS NOT NULL AND order_no > ?
		ORDER BY order_no LIMIT ?`, after, limit)
	if err != nil {
		return nil, nil, fmt.Errorf("unpaid orders after %q: %w", after, err)
	}
	return ids, dueMS, nil
}

// page reads one page of numbers and instants by query, whose arguments are after and limit.
func (s *Store) page(ctx context.Context, query, after string, limit int) (ids []string, dueMS []int64, err error) {
	var f check.Faults
	f.Range("limit", int64(limit), 1, check.MaxQuantity)
	if err := f.Err(order.ErrInvalid); err != nil {
		return nil, nil, err
	}
	err = s.retry(ctx, func() (err error) {
		ids, dueMS, err = s.pageOnce(ctx, query, after, limit)
		return err
	})
	return ids, dueMS, err
}

func (s *Store) pageOnce(ctx context.Context, query, after string, limit int) (ids []string, dueMS []int64, err error) {
	rows, err := s.db.QueryContext(ctx, s.dialect.Rebind(query), after, limit)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		var ms int64
		if err := rows.Scan(&id, &ms); err != nil {
			return nil, nil, err
		}
		ids, dueMS = append(ids, id), append(dueMS, ms)
	}
	return ids, dueMS, rows.Err()
}

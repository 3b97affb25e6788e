package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/internal/check"
)

// A move takes units of a sku from one column of sku_stock to another, guarded by there being
// enough, and writes the ledger row that allows it once an order.
type move struct {
	op     string // in stock_ledger
	from   string // the column it takes from, for messages
	update string // arguments: quantity, quantity, sku, quantity
}

var (
	lockStock = move{op: "lock", from: "stock", update: `
		UPDATE sku_stock SET stock = stock - ?, lock_stock = lock_stock + ?
		WHERE sku_id = ? AND stock >= ?`}
	releaseStock = move{op: "release", from: "lock_stock", update: `
		UPDATE sku_stock SET lock_stock = lock_stock - ?, stock = stock + ?
		WHERE sku_id = ? AND lock_stock >= ?`}
	sellStock = move{op: "sell", from: "lock_stock", update: `
		UPDATE sku_stock SET lock_stock = lock_stock - ?, sold = sold + ?
		WHERE sku_id = ? AND lock_stock >= ?`}
)

// shortage says why a guard held a move back.
type shortage struct {
	known bool  // whether there is such a sku
	have  int64 // units in the column that the move takes from
}

// move applies m to one line of an order, or changes nothing and returns the shortage.
func (t *tx) move(m move, orderNo string, it order.Item, atMS int64) (*shortage, error) {
	n, err := t.exec(m.update, it.Quantity, it.Quantity, it.SKU, it.Quantity)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		var s shortage
		s.known, err = t.get(`SELECT `+m.from+` FROM sku_stock WHERE sku_id = ?`, []any{it.SKU}, &s.have)
		return &s, err
	}
	_, err = t.exec(`INSERT INTO stock_ledger (order_no, sku_id, op, quantity, at) VALUES (?, ?, ?, ?, ?)`,
		orderNo, it.SKU, m.op, it.Quantity, atMS)
	if err != nil && t.dialect.Duplicate(err) {
		err = fmt.Errorf("%w: order %q: sku %q: the stock_ledger has a %s of this order already: %w",
			order.ErrInconsistency, orderNo, it.SKU, m.op, err)
	}
	return nil, err
}

// settleStock applies m, which takes from lock_stock, to all lines of an order. What the order
// locked must be there.
func (t *tx) settleStock(m move, orderNo string, atMS int64) error {
	items, err := t.items(itemsOf, orderNo)
	if err == nil && len(items) == 0 {
		// Every order has a line. A snapshot that is older than the order does not show them (MySQL at
		// REPEATABLE READ, whose UPDATE changes a row that the snapshot has not); a locking read does.
		items, err = t.items(itemsOf+t.locking(wait), orderNo)
	}
	if err != nil {
		return err
	}
	for _, it := range items {
		short, err := t.move(m, orderNo, it, atMS)
		if err != nil {
			return err
		}
		if short != nil {
			return fmt.Errorf("%w: order %q locked %d of sku %q, but its lock_stock is %d",
				order.ErrInconsistency, orderNo, it.Quantity, it.SKU, short.have)
		}
	}
	return nil
}

// items reads the lines of an order by query, in the order of sku, by bytes. Every transaction takes
// the rows of sku_stock in this order, so no two wait for each other.
func (t *tx) items(query, orderNo string) ([]order.Item, error) {
	rows, err := t.query(query, orderNo)
	if err != nil {
		return nil, err
	}
	return scanItems(rows)
}

func bySKU(a, b order.Item) int { return strings.Compare(a.SKU, b.SKU) }

// AddStock makes n more units of a sku available, and creates the sku when it is new. It is not
// idempotent: after order.ErrUnknownOutcome look before you repeat it. order.ErrInvalid is returned
// for an unfit sku or n < 1.
func (s *Store) AddStock(ctx context.Context, sku string, n int64) error {
	var f check.Faults
	f.ID("sku", sku)
	f.Range("n", n, 1, check.MaxStock)
	if err := f.Err(order.ErrInvalid); err != nil {
		return fmt.Errorf("add stock: %w", err)
	}
	err := s.write(ctx, func(t *tx) error {
		known, err := t.exec(`UPDATE sku_stock SET stock = stock + ? WHERE sku_id = ?`, n, sku)
		if err != nil || known > 0 {
			return err
		}
		_, err = t.exec(`INSERT INTO sku_stock (sku_id, stock, lock_stock, sold) VALUES (?, ?, 0, 0)`, sku, n)
		if err != nil && t.dialect.Duplicate(err) {
			return errMoved // another call created it in between
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("add stock of sku %q: %w", sku, err)
	}
	return nil
}

// sortedItems is a copy of items in the order in which stock is taken.
func sortedItems(items []order.Item) []order.Item {
	return slices.SortedFunc(slices.Values(items), bySKU)
}

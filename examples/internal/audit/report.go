package audit

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
)

// Report is what the audit found. In a finished run with no fault every figure
// but Orders, Paid, Closed, Refunds, By and LateMS is 0.
type Report struct {
	Orders  int64 `json:"orders"`
	Paid    int64 `json:"paid"`
	Closed  int64 `json:"closed"`
	Open    int64 `json:"open"`
	Refunds int64 `json:"refunds"`

	StockLocked   int64 `json:"stock_locked"`   // units still locked by orders that are not open
	StockMissing  int64 `json:"stock_missing"`  // units that are neither free, locked nor sold
	CouponsFrozen int64 `json:"coupons_frozen"` // still frozen by orders that are not open

	// Early counts the calls of the handler before the expire_at that the engine
	// had been told, and the orders that were closed before theirs.
	Early int64 `json:"early"`

	Lost int64 `json:"lost"` // open orders that expire, of which Redis knows no task

	// DuplicateEffects is the sum of the units of stock given back too often,
	// the coupons unfrozen more often than their orders closed, and the refunds
	// beyond one per payment.
	DuplicateEffects int64 `json:"duplicate_effects"`

	By     By     `json:"by"`
	LateMS LateMS `json:"late_ms"`
}

// By counts the calls of the handler by what brought the task.
type By struct {
	Wheel    int64 `json:"wheel"`
	Sweep    int64 `json:"sweep"`
	Recovery int64 `json:"recovery"`

	// Reconcile: the order database had the order, and Redis no task of it.
	Reconcile int64 `json:"reconcile"`
}

// Total is the number of calls.
func (b By) Total() int64 { return b.Wheel + b.Sweep + b.Recovery + b.Reconcile }

// LateMS says how long after expire_at the handler was first called for the
// orders that are closed, in milliseconds. (A call before an order was extended
// does not count.) The percentiles are those of the nearest rank.
type LateMS struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// Check is a figure that must be 0 after a finished run.
type Check struct {
	Name  string // as in the JSON
	Count int64
	Means string
}

// Checks lists the figures that must be 0.
func (r Report) Checks() []Check {
	return []Check{
		{"open", r.Open, "orders neither paid nor closed"},
		{"stock_locked", r.StockLocked, "units still locked by orders that are not open"},
		{"stock_missing", r.StockMissing, "units neither free, locked nor sold"},
		{"coupons_frozen", r.CouponsFrozen, "coupons still frozen by orders that are not open"},
		{"early", r.Early, "calls of the handler before the order expired"},
		{"lost", r.Lost, "open orders of which Redis knows no task"},
		{"duplicate_effects", r.DuplicateEffects, "units, coupons and refunds given back twice"},
	}
}

// Faults lists the checks that fail.
func (r Report) Faults() []Check {
	return slices.DeleteFunc(r.Checks(), func(c Check) bool { return c.Count == 0 })
}

// Report judges what has happened so far. It may be called while the engine
// runs.
func (a *Audit) Report(ctx context.Context) (Report, error) {
	r, err := a.report(ctx)
	if err != nil {
		return Report{}, fmt.Errorf("audit: %w", err)
	}
	return r, nil
}

func (a *Audit) report(ctx context.Context) (r Report, err error) {
	n, err := a.load(ctx)
	if err != nil {
		return r, fmt.Errorf("load the notes: %w", err)
	}
	if r.Lost, err = a.lost(ctx); err != nil {
		return r, fmt.Errorf("look for lost orders: %w", err)
	}
	// One snapshot, so that the figures fit each other.
	tx, err := a.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return r, err
	}
	defer func() { _ = tx.Rollback() }()
	for _, part := range []struct {
		name string
		read func(context.Context, *sql.Tx, *Report) error
	}{
		{"orders", readOrders}, {"stock", readStock}, {"coupons", readCoupons}, {"refunds", readRefunds},
		{"calls", func(ctx context.Context, tx *sql.Tx, r *Report) error { return readCalls(ctx, tx, n, r) }},
	} {
		if err := part.read(ctx, tx, &r); err != nil {
			return r, fmt.Errorf("read the %s: %w", part.name, err)
		}
	}
	return r, nil
}

// load reads the files of all processes, and makes audit_calls what they say.
func (a *Audit) load(ctx context.Context) (*noted, error) {
	if err := a.log.err(); err != nil {
		return nil, err
	}
	n, err := readLogs(a.dir)
	if err != nil {
		return nil, err
	}
	tx, err := a.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, `DELETE FROM audit_calls`); err != nil {
		return nil, err
	}
	insert, err := tx.PrepareContext(ctx, `INSERT INTO audit_calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	if err != nil {
		return nil, err
	}
	defer insert.Close()
	for _, c := range n.calls {
		_, err := insert.ExecContext(ctx, c.id, c.pid, c.orderNo, c.source, c.attempt, c.claim, c.nowUS, c.entryUS, c.commitUS, c.err)
		if err != nil {
			return nil, err
		}
	}
	return n, tx.Commit()
}

func readOrders(ctx context.Context, tx *sql.Tx, r *Report) error {
	return tx.QueryRowContext(ctx, `
		SELECT count(*), count(*) FILTER (WHERE status = 'paid'), count(*) FILTER (WHERE status = 'closed'),
			count(*) FILTER (WHERE status = 'unpaid')
		FROM orders`).Scan(&r.Orders, &r.Paid, &r.Closed, &r.Open)
}

// sku is the account of one sku, in units.
type sku struct {
	initial, stock, locked int64
	sold, held             int64 // by the items of paid and of open orders
}

func (s sku) stillLocked() int64 { return max(0, s.locked-s.held) }

func (s sku) missing() int64 { return max(0, s.initial-s.stock-s.locked-s.sold) }

// surplus is what came back too often. Where more was released than was locked
// by the closed order, the units come out of what open orders hold, and stock,
// locked and sold still add up; so what should be locked counts where less is.
func (s sku) surplus() int64 { return max(0, s.stock+max(s.locked, s.held)+s.sold-s.initial) }

func readStock(ctx context.Context, tx *sql.Tx, r *Report) error {
	rows, err := tx.QueryContext(ctx, `
		SELECT coalesce(a.initial, 0), coalesce(s.stock, 0), coalesce(s.lock_stock, 0), coalesce(i.sold, 0), coalesce(i.held, 0)
		FROM (SELECT sku_id FROM sku_stock UNION SELECT sku_id FROM audit_stock) AS k
		LEFT JOIN audit_stock AS a USING (sku_id)
		LEFT JOIN sku_stock AS s USING (sku_id)
		LEFT JOIN (
			SELECT sku_id, sum(quantity) FILTER (WHERE status = 'paid') AS sold, sum(quantity) FILTER (WHERE status = 'unpaid') AS held
			FROM order_items JOIN orders USING (order_no)
			GROUP BY sku_id
		) AS i USING (sku_id)`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var s sku
		if err := rows.Scan(&s.initial, &s.stock, &s.locked, &s.sold, &s.held); err != nil {
			return err
		}
		r.StockLocked += s.stillLocked()
		r.StockMissing += s.missing()
		r.DuplicateEffects += s.surplus()
	}
	return rows.Err()
}

func readCoupons(ctx context.Context, tx *sql.Tx, r *Report) error {
	var twice int64
	err := tx.QueryRowContext(ctx, `
		SELECT
			(SELECT count(*) FROM user_coupons AS c WHERE c.status = 'frozen' AND NOT EXISTS (
				SELECT 1 FROM orders AS o WHERE o.order_no = c.order_no AND o.status = 'unpaid')),
			(SELECT coalesce(sum(max(0, u.times - coalesce(c.times, 0))), 0)
			FROM (SELECT coupon_id, count(*) AS times FROM audit_unfreezes GROUP BY coupon_id) AS u
			LEFT JOIN (
				SELECT coupon_id, count(*) AS times FROM orders WHERE status = 'closed' AND coupon_id IS NOT NULL GROUP BY coupon_id
			) AS c USING (coupon_id))`).
		Scan(&r.CouponsFrozen, &twice)
	r.DuplicateEffects += twice
	return err
}

func readRefunds(ctx context.Context, tx *sql.Tx, r *Report) error {
	var payments int64
	err := tx.QueryRowContext(ctx, `SELECT count(*), count(DISTINCT payment_id) FROM refunds`).Scan(&r.Refunds, &payments)
	r.DuplicateEffects += r.Refunds - payments
	return err
}

package scheme

import (
	"context"
	"database/sql"
	_ "embed" // schema.sql
	"fmt"
	"strings"

	_ "github.com/go-sql-driver/mysql" // the order database
)

// The statuses of an order, and of a coupon.
const (
	unpaid, paid, closed = 0, 1, 2
	unused, frozen       = 0, 1
)

// stockEach is what is in stock of each article before any order.
const stockEach = 1_000_000

//go:embed schema.sql
var schema string

// OpenDB opens the order database. dsn is the server's, of the usual driver, without parameters.
// Statements are sent as they are, so that the server counts each once.
func OpenDB(dsn string) (*sql.DB, error) {
	db, err := sql.Open("mysql", dsn+"?interpolateParams=true&multiStatements=true")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(maxConns)
	db.SetMaxIdleConns(maxConns)
	return db, nil
}

const maxConns = 64

// Create makes the tables anew and inserts the orders of p: all unpaid, their stock
// locked, their coupons frozen.
func Create(ctx context.Context, db *sql.DB, p Plan) error {
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return fmt.Errorf("make the tables: %w", err)
	}
	held := make([]int, Skus)
	for at := 0; at < p.Orders; at += page {
		var orders, coupons []string
		for i := at; i < min(at+page, p.Orders); i++ {
			o := p.Order(i)
			held[sku(i)]++
			orders = append(orders, fmt.Sprintf("(%s,%d,%d,%d,%d,1,%s)", o.ID, o.UserID, unpaid, o.ExpireAt.UnixMilli(), sku(i), o.ID))
			coupons = append(coupons, fmt.Sprintf("(%s,%d)", o.ID, frozen))
		}
		if err := insert(ctx, db, "orders", orders); err != nil {
			return err
		}
		if err := insert(ctx, db, "coupons", coupons); err != nil {
			return err
		}
	}
	var stock []string
	for s, n := range held {
		stock = append(stock, fmt.Sprintf("(%d,%d,%d)", s, stockEach-n, n))
	}
	return insert(ctx, db, "stock", stock)
}

const page = 1000

func sku(i int) int { return i % Skus }

func insert(ctx context.Context, db *sql.DB, table string, rows []string) error {
	if _, err := db.ExecContext(ctx, "INSERT INTO "+table+" VALUES "+strings.Join(rows, ",")); err != nil {
		return fmt.Errorf("fill %s: %w", table, err)
	}
	return nil
}

// Pay pays the orders of p that are paid in time.
func Pay(ctx context.Context, db *sql.DB, p Plan) error {
	for at := 0; at < p.Orders; at += page {
		var ids []string
		for i := at; i < min(at+page, p.Orders); i++ {
			if p.Paid(i) {
				ids = append(ids, p.Order(i).ID)
			}
		}
		if len(ids) == 0 {
			continue
		}
		if _, err := db.ExecContext(ctx, "UPDATE orders SET status = ? WHERE order_no IN ("+strings.Join(ids, ",")+")", paid); err != nil {
			return fmt.Errorf("pay orders: %w", err)
		}
	}
	return nil
}

// Open is how many orders are neither paid nor closed. It is one SELECT.
func Open(ctx context.Context, db *sql.DB) (n int, err error) {
	err = db.QueryRowContext(ctx, "SELECT COUNT(*) FROM orders WHERE status = ?", unpaid).Scan(&n)
	return n, err
}

// DoubleEffects is how many units were given back to stock more than once.
func DoubleEffects(ctx context.Context, db *sql.DB) (units int, err error) {
	err = db.QueryRowContext(ctx, `
		SELECT COALESCE(SUM(GREATEST(s.stock + COALESCE(o.held, 0) - ?, 0)), 0)
		FROM stock s LEFT JOIN (
			SELECT sku_id, SUM(quantity) AS held FROM orders WHERE status <> ? GROUP BY sku_id
		) o USING (sku_id)`, stockEach, closed).Scan(&units)
	return units, err
}

// MissingEffects is how many units of closed orders were not given back to stock.
func MissingEffects(ctx context.Context, db *sql.DB) (units int, err error) {
	err = db.QueryRowContext(ctx, `
		SELECT COALESCE(SUM(GREATEST(? - s.stock - COALESCE(o.held, 0), 0)), 0)
		FROM stock s LEFT JOIN (
			SELECT sku_id, SUM(quantity) AS held FROM orders WHERE status <> ? GROUP BY sku_id
		) o USING (sku_id)`, stockEach, closed).Scan(&units)
	return units, err
}

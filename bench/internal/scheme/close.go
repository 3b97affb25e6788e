package scheme

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"
)

// Result is what a close found.
type Result int

// The results of a close.
const (
	Closed  Result = iota + 1
	Nothing        // the order was paid, or closed before
)

// Done reports that the order needs no further close: for orderwheel.Closing.
func (r Result) Done() bool { return r == Closed || r == Nothing }

// Close closes an order if it is unpaid: the conditional update decides, and stock and
// coupon go with it or not at all. It may be run again, and by many at once.
func Close(ctx context.Context, db *sql.DB, id string) (Result, error) {
	return transact(ctx, db, func(tx *sql.Tx) (Result, error) {
		result, err := tx.ExecContext(ctx, "UPDATE orders SET status = ? WHERE order_no = ? AND status = ?", closed, id, unpaid)
		if err != nil {
			return 0, err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return Nothing, err
		}
		return Closed, giveBack(ctx, tx, id)
	})
}

// CloseAsWritten closes an order as the articles' listings do: it reads the status,
// and where that is unpaid sets it and gives back what the order held. In one transaction, but
// two at once may both read unpaid.
func CloseAsWritten(ctx context.Context, db *sql.DB, id string) (Result, error) {
	return transact(ctx, db, func(tx *sql.Tx) (Result, error) {
		var status int
		if err := tx.QueryRowContext(ctx, "SELECT status FROM orders WHERE order_no = ?", id).Scan(&status); err != nil {
			return 0, err
		}
		if status != unpaid {
			return Nothing, nil
		}
		if _, err := tx.ExecContext(ctx, "UPDATE orders SET status = ? WHERE order_no = ?", closed, id); err != nil {
			return 0, err
		}
		return Closed, giveBack(ctx, tx, id)
	})
}

func giveBack(ctx context.Context, tx *sql.Tx, id string) error {
	if _, err := tx.ExecContext(ctx, `UPDATE stock s JOIN orders o USING (sku_id)
		SET s.stock = s.stock + o.quantity, s.lock_stock = s.lock_stock - o.quantity WHERE o.order_no = ?`, id); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, "UPDATE coupons c JOIN orders o USING (coupon_id) SET c.status = ? WHERE o.order_no = ?", unused, id)
	return err
}

// transact runs f in a transaction, again if the server chose it to end a deadlock.
func transact(ctx context.Context, db *sql.DB, f func(*sql.Tx) (Result, error)) (Result, error) {
	for {
		r, err := once(ctx, db, f)
		if fault := (*mysql.MySQLError)(nil); errors.As(err, &fault) && fault.Number == deadlock {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("close: %w", err)
		}
		return r, nil
	}
}

const deadlock = 1213

func once(ctx context.Context, db *sql.DB, f func(*sql.Tx) (Result, error)) (Result, error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	r, err := f(tx)
	if err != nil {
		_ = tx.Rollback()
		return 0, err
	}
	return r, tx.Commit()
}

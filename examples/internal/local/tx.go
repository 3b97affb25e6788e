package local

import (
	"context"
	"database/sql"
)

// InTx runs do in one transaction: all of it is applied, or nothing.
func InTx(ctx context.Context, db *sql.DB, do func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // of no effect after the commit
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// Changed is how many rows a statement has changed: that, and no status read before, says who won.
func Changed(res sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	mysqldriver "github.com/go-sql-driver/mysql"

	"github.com/orderwheel/orderwheel/order/sqlstore"
	"github.com/orderwheel/orderwheel/order/sqlstore/mysql"
	"github.com/orderwheel/orderwheel/order/sqlstore/postgres"
	"github.com/orderwheel/orderwheel/order/sqlstore/sqlite"
)

// openStore opens the orders: the SQLite file, or the database that the DSN names. The caller closes
// its DB.
func openStore(ctx context.Context, o options, so sqlstore.Options) (*sqlstore.Store, sqlstore.Dialect, error) {
	db, dialect, err := openDatabase(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	store, err := sqlstore.NewWith(db, dialect, so)
	if err == nil {
		err = store.Migrate(ctx)
	}
	if err == nil {
		err = createScanIndex(ctx, db, dialect)
	}
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return store, dialect, nil
}

func openDatabase(ctx context.Context, o options) (db *sql.DB, d sqlstore.Dialect, err error) {
	switch {
	case o.dsn == "":
		db, err = sqlite.Open(ctx, o.db)
		if err != nil {
			err = fmt.Errorf("-db is %q: %w: give a file in a folder that can be written", o.db, err)
		}
		d = sqlite.Dialect{}
	case strings.HasPrefix(o.dsn, "postgres://"), strings.HasPrefix(o.dsn, "postgresql://"):
		db, err = postgres.Open(ctx, o.dsn)
		d = postgres.Dialect{}
	default:
		db, err = mysql.Open(ctx, o.dsn)
		d = mysql.Dialect{}
	}
	if err != nil && o.dsn != "" { // which may hold a password
		err = fmt.Errorf("-dsn: %w: start the database, or correct it", err)
	}
	return db, d, err
}

// createScanIndex makes the scan a range of an index, of the unpaid orders alone where the database
// can. Without it every round reads the whole table, and gets slower with each order ever sold. (On
// a table that is large already, create it by hand, CONCURRENTLY or ONLINE.)
func createScanIndex(ctx context.Context, db *sql.DB, d sqlstore.Dialect) error {
	create := `CREATE INDEX IF NOT EXISTS orders_overdue ON orders (expire_at, order_no) WHERE status = 'unpaid'`
	if _, ok := d.(mysql.Dialect); ok {
		create = `CREATE INDEX orders_overdue ON orders (status, expire_at, order_no)`
	}
	_, err := db.ExecContext(ctx, create)
	if e := (*mysqldriver.MySQLError)(nil); errors.As(err, &e) && e.Number == duplicateKeyName || err != nil && d.Duplicate(err) {
		return nil // it is there; PostgreSQL says so where another instance has just created it
	}
	return err
}

const duplicateKeyName = 1061 // ER_DUP_KEYNAME

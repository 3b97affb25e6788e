package sqlstore_test

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/order/sqlstore"
)

// first is a dialect that has the first migration only.
type first struct{ sqlstore.Dialect }

func (d first) Migrations() fs.FS {
	const file = "migrations/0001_orders.sql"
	text, err := fs.ReadFile(d.Dialect.Migrations(), file)
	if err != nil {
		panic(err)
	}
	return fstest.MapFS{file: {Data: text}}
}

// A database from before the counts, and from before the table of payments, has them after the
// migration.
func TestWhatStandsIsCountedByTheMigrations(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		dsn := db.place(t)
		old := db
		old.dialect = first{db.dialect}
		before := newShop(t, old, db.opened(t, dsn))
		for _, stmt := range []string{
			`INSERT INTO sku_stock VALUES ('a', 7, 3, 0)`,
			`INSERT INTO orders (order_no, user_id, status, amount, created_at)
				VALUES ('o1', 'u', 'unpaid', 0, 0), ('o2', 'u', 'unpaid', 0, 0), ('o3', 'v', 'unpaid', 0, 0)`,
			`INSERT INTO order_items SELECT order_no, 'a', 1 FROM orders`,
			`INSERT INTO stock_ledger SELECT order_no, 'a', 'lock', 1, 0 FROM orders`,
			`INSERT INTO orders (order_no, user_id, status, amount, created_at, payment_id, paid_at)
				VALUES ('o4', 'u', 'paid', 0, 0, 'p4', 0)`,
			`INSERT INTO order_items VALUES ('o4', 'a', 1)`,
			`INSERT INTO stock_ledger VALUES ('o4', 'a', 'lock', 1, 0), ('o4', 'a', 'sell', 1, 0)`,
			`INSERT INTO refunds VALUES ('p5', 'o4', 0, 'order paid by another payment', 0)`,
			`UPDATE sku_stock SET stock = 6, sold = 1`,
		} {
			before.exec(stmt)
		}

		s := newShop(t, db, db.opened(t, dsn))
		s.initial["a"] = 10
		s.checkAtEnd()
		require.Equal(t, 2, s.unpaid("u"))
		require.Equal(t, 1, s.unpaid("v"))
		s.abandon("o1", t0)
		require.Equal(t, 1, s.unpaid("u"))
		require.Equal(t, 2, s.count(`SELECT COUNT(*) FROM payments WHERE order_no = 'o4' AND payment_id IN ('p4', 'p5')`))
	})
}

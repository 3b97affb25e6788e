package sqlstore_test

import (
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/order/sqlstore/sqlite"
)

// A database from before the counts has them after the migration.
func TestTheUnpaidOrdersThatStandAreCountedByTheMigration(t *testing.T) {
	t.Parallel()
	first, err := fs.ReadFile(sqlite.Dialect{}.Migrations(), "migrations/0001_orders.sql")
	require.NoError(t, err)
	db := openDB(t, filepath.Join(t.TempDir(), "orders.db"))
	newShop(t, db, grown{more: map[string]string{"0001_orders": string(first)}}).exec(`
		INSERT INTO sku_stock VALUES ('a', 7, 3, 0);
		INSERT INTO orders (order_no, user_id, status, amount, created_at, closed_at, close_reason) VALUES
			('o1', 'u', 'unpaid', 0, 0, NULL, NULL), ('o2', 'u', 'unpaid', 0, 0, NULL, NULL), ('o3', 'v', 'unpaid', 0, 0, NULL, NULL);
		INSERT INTO order_items SELECT order_no, 'a', 1 FROM orders;
		INSERT INTO stock_ledger SELECT order_no, 'a', 'lock', 1, 0 FROM orders`)

	s := newShop(t, db, sqlite.Dialect{})
	s.initial = map[string]int64{"a": 10}
	s.checkAtEnd()
	require.Equal(t, 2, s.unpaid("u"))
	require.Equal(t, 1, s.unpaid("v"))
	s.abandon("o1", t0)
	require.Equal(t, 1, s.unpaid("u"))
}

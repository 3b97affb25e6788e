package sqlstore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/internal/dbserver"
	"github.com/orderwheel/orderwheel/internal/dbtest"
	"github.com/orderwheel/orderwheel/order/sqlstore"
	"github.com/orderwheel/orderwheel/order/sqlstore/mysql"
	"github.com/orderwheel/orderwheel/order/sqlstore/postgres"
	"github.com/orderwheel/orderwheel/order/sqlstore/sqlite"
)

// backend is one of the databases that the suite runs on.
type backend struct {
	name    string
	dialect sqlstore.Dialect

	place     func(testing.TB) (dsn string)    // of an empty database, gone when the test ends
	served    func(testing.TB) dbtest.Database // that place, by way of a server; nil for SQLite
	open      func(ctx context.Context, dsn string) (*sql.DB, error)
	connector func(dsn string) (driver.Connector, error) // open's own
	snapshot  sql.TxOptions                              // of a transaction that reads all at one instant

	private func(testing.TB, ...string) *dbserver.Server // a server of a test's own
	initial string                                       // a database that it has

	impatient string // what a DSN says to wait for a lock, or a deadlock, for a short time only
	// How it tells the plan of a statement, with the statistics of its tables fresh; and what stands
	// in a plan (patterns) that reads the index orders_unpaid alone, that uses some index, that reads a
	// whole table.
	analyze, explain          string
	covered, indexed, scanned string

	waiting string // a query that counts the transactions that wait for a lock
}

// SQLite is opened without fsync: no test here cuts the power.
var noSync = sqlite.Options{Sync: sqlite.SyncNormal}

var (
	onlySQLite = backend{
		name:      "sqlite",
		dialect:   sqlite.Dialect{},
		place:     func(t testing.TB) string { return filepath.Join(t.TempDir(), "orders.db") },
		open:      func(ctx context.Context, path string) (*sql.DB, error) { return sqlite.OpenWith(ctx, path, noSync) },
		connector: func(path string) (driver.Connector, error) { return sqlite.Connector(path, noSync) },
		snapshot:  sql.TxOptions{ReadOnly: true},
		analyze:   "ANALYZE",
		explain:   "EXPLAIN QUERY PLAN ",
		covered:   `SEARCH orders USING COVERING INDEX orders_unpaid \(order_no>\?\)`,
		indexed:   `SEARCH \w+ USING (PRIMARY KEY|COVERING INDEX|INDEX)`,
		scanned:   `SCAN`,
	}
	backends = []backend{onlySQLite, {
		name:      "mariadb",
		dialect:   mysql.Dialect{},
		place:     func(t testing.TB) string { return dbtest.MariaDB(t).DSN() },
		served:    dbtest.MariaDB,
		private:   dbtest.StartMariaDB,
		initial:   "mysql",
		analyze:   "ANALYZE TABLE orders, order_items, sku_stock, user_coupons, user_unpaid",
		explain:   "EXPLAIN ",
		covered:   `type=range .*key=orders_unpaid .*Extra=Using where; Using index$`,
		indexed:   `key=PRIMARY`,
		scanned:   `type=(ALL|index) `,
		impatient: "?innodb_lock_wait_timeout=1",
		waiting:   `SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'`,
		open:      mysql.Open,
		connector: mysql.Connector,
		snapshot:  sql.TxOptions{ReadOnly: true, Isolation: sql.LevelRepeatableRead},
	}, {
		name:      "postgres",
		dialect:   postgres.Dialect{},
		place:     func(t testing.TB) string { return dbtest.Postgres(t).DSN() },
		served:    dbtest.Postgres,
		private:   dbtest.StartPostgres,
		initial:   "postgres",
		analyze:   "ANALYZE",
		explain:   "EXPLAIN ",
		covered:   `Index Only Scan using orders_unpaid`,
		indexed:   `Index (Only )?Scan (using|on) \w+`,
		scanned:   `Seq Scan`,
		impatient: "&lock_timeout=300ms&deadlock_timeout=10ms",
		waiting:   `SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'`,
		open:      postgres.Open,
		connector: postgres.Connector,
		snapshot:  sql.TxOptions{ReadOnly: true, Isolation: sql.LevelRepeatableRead},
	}}
)

// onEach runs a test on each database.
func onEach(t *testing.T, test func(*testing.T, backend)) { on(t, backends, test) }

// onServers runs a test on each database that is a server: with locks of rows, and a connection that
// may be lost.
func onServers(t *testing.T, test func(*testing.T, backend)) { on(t, backends[1:], test) }

func on(t *testing.T, backends []backend, test func(*testing.T, backend)) {
	for _, db := range backends {
		t.Run(db.name, func(t *testing.T) {
			t.Parallel()
			test(t, db)
		})
	}
}

// named is the backend of that name.
func named(name string) backend {
	for _, db := range backends {
		if db.name == name {
			return db
		}
	}
	panic("no backend " + name)
}

// opened is a database opened until t ends.
func (b backend) opened(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := b.open(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

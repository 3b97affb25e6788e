package sqlstore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

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

	place     func(testing.TB) (dsn string) // of an empty database, gone when the test ends
	open      func(ctx context.Context, dsn string) (*sql.DB, error)
	connector func(dsn string) (driver.Connector, error) // open's own
	snapshot  sql.TxOptions                              // of a transaction that reads all at one instant
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
	}
	backends = []backend{onlySQLite, {
		name:      "mariadb",
		dialect:   mysql.Dialect{},
		place:     func(t testing.TB) string { return dbtest.MariaDB(t).DSN() },
		open:      mysql.Open,
		connector: mysql.Connector,
		snapshot:  sql.TxOptions{ReadOnly: true, Isolation: sql.LevelRepeatableRead},
	}, {
		name:      "postgres",
		dialect:   postgres.Dialect{},
		place:     func(t testing.TB) string { return dbtest.Postgres(t).DSN() },
		open:      postgres.Open,
		connector: postgres.Connector,
		snapshot:  sql.TxOptions{ReadOnly: true, Isolation: sql.LevelRepeatableRead},
	}}
)

// onEach runs a test on each database.
func onEach(t *testing.T, test func(*testing.T, backend)) {
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

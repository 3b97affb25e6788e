package mysql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/orderwheel/orderwheel/internal/dbtest"
	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/sqlstore"
	"github.com/orderwheel/orderwheel/order/sqlstore/mysql"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(dbtest.Stopping(m)) }

func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := mysql.Open(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func text(t *testing.T, db interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}, query string, args ...any) (v string) {
	t.Helper()
	require.NoError(t, db.QueryRowContext(t.Context(), query, args...).Scan(&v))
	return v
}

func TestEachConnectionIsSetUp(t *testing.T) {
	t.Parallel()
	db := open(t, dbtest.MariaDB(t).DSN())
	for range 3 {
		conn, err := db.Conn(t.Context()) // held, so that the next is another
		require.NoError(t, err)
		defer conn.Close()
		require.Equal(t, "READ-COMMITTED", text(t, conn, `SELECT @@tx_isolation`))
		require.Equal(t, "5", text(t, conn, `SELECT @@innodb_lock_wait_timeout`))
		require.Equal(t, "5", text(t, conn, `SELECT @@lock_wait_timeout`))
		require.Equal(t, "utf8mb4", text(t, conn, `SELECT @@character_set_client`))
		require.Contains(t, text(t, conn, `SELECT @@sql_mode`), "STRICT_ALL_TABLES")
	}
}

func TestTheLockWaitOfTheDSNStands(t *testing.T) {
	t.Parallel()
	db := open(t, dbtest.MariaDB(t).DSN()+"?innodb_lock_wait_timeout=2&lock_wait_timeout=3")
	require.Equal(t, "2", text(t, db, `SELECT @@innodb_lock_wait_timeout`))
	require.Equal(t, "3", text(t, db, `SELECT @@lock_wait_timeout`))
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ dsn, says string }{
		"not a DSN":         {"localhost", "invalid DSN"},
		"no database":       {"root@tcp(127.0.0.1:1)/", "name one"},
		"another isolation": {"root@tcp(127.0.0.1:1)/shop?transaction_isolation=%27SERIALIZABLE%27", "transaction_isolation is 'SERIALIZABLE': leave it out"},
		"another sql_mode":  {"root@tcp(127.0.0.1:1)/shop?sql_mode=%27%27", "sql_mode"},
		"no autocommit":     {"root@tcp(127.0.0.1:1)/shop?AUTOCOMMIT=0", "AUTOCOMMIT is 0"},
		"two faults":        {"root@tcp(127.0.0.1:1)/?foreign_key_checks=0", "foreign_key_checks is 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := mysql.Open(t.Context(), c.dsn)
			require.ErrorIs(t, err, order.ErrInvalid)
			require.ErrorContains(t, err, c.says)
		})
	}
}

func TestAServerThatIsNotThereIsAnError(t *testing.T) {
	t.Parallel()
	_, err := mysql.Open(t.Context(), "root:secret@tcp(127.0.0.1:1)/shop")
	require.ErrorContains(t, err, "open MySQL")
	require.NotContains(t, err.Error(), "secret")
}

// A replica does not know yet what was paid.
func TestAServerThatIsReadOnlyIsRefused(t *testing.T) {
	t.Parallel()
	server := dbtest.StartMariaDB(t, "--read-only=1")
	_, err := mysql.Open(t.Context(), server.DSN("mysql"))
	require.ErrorIs(t, err, mysql.ErrReadOnly)
}

func TestIdsCompareByBytes(t *testing.T) {
	t.Parallel()
	db := open(t, dbtest.MariaDB(t).DSN())
	s := sqlstore.New(db, mysql.Dialect{})
	require.NoError(t, s.Migrate(t.Context()))
	ids := []string{"a", "A", "a ", "ä", "Ä", "a\\", "a'", "\t", "茶", "\U0001f375", strings.Repeat("x", 256)}
	for i, id := range ids {
		require.NoError(t, s.AddStock(t.Context(), id, int64(i+1)), "%q", id)
	}
	for i, id := range ids {
		require.Equal(t, fmt.Sprint(i+1), text(t, db, `SELECT stock FROM sku_stock WHERE sku_id = ?`, id), "%q", id)
	}
}

// DDL commits by itself: whoever was killed in the middle leaves some of the tables.
func TestAMigrationThatWasCutOffIsCompleted(t *testing.T) {
	t.Parallel()
	db := open(t, dbtest.MariaDB(t).DSN())
	s := sqlstore.New(db, mysql.Dialect{})
	require.NoError(t, s.Migrate(t.Context()))
	for _, stmt := range []string{"DROP TABLE close_log", "DROP TABLE refunds", "DELETE FROM orderwheel_migrations"} {
		_, err := db.ExecContext(t.Context(), stmt)
		require.NoError(t, err)
	}
	require.NoError(t, s.Migrate(t.Context()))
	require.Equal(t, "0", text(t, db, `SELECT COUNT(*) FROM close_log`))
	require.Equal(t, "0001_orders", text(t, db, `SELECT name FROM orderwheel_migrations WHERE version = 1`))
}

func TestTheLockOfAMigrationIsGivenBack(t *testing.T) {
	t.Parallel()
	d := dbtest.MariaDB(t)
	one, two := open(t, d.DSN()), open(t, d.DSN())
	for _, db := range []*sql.DB{one, two, one} { // each keeps its connection
		require.NoError(t, sqlstore.New(db, mysql.Dialect{}).Migrate(t.Context()))
	}
}

func TestTheDialectKnowsItsErrors(t *testing.T) {
	t.Parallel()
	db := open(t, dbtest.MariaDB(t).DSN()+"?innodb_lock_wait_timeout=1&lock_wait_timeout=1")
	d := mysql.Dialect{}
	require.NoError(t, sqlstore.New(db, d).Migrate(t.Context()))
	exec := func(q string) error { _, err := db.ExecContext(t.Context(), q); return err }
	coupon := `INSERT INTO user_coupons VALUES ('c', 'u', 'unused', NULL, 0)`
	require.NoError(t, exec(coupon))
	writer, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = writer.Exec(`UPDATE user_coupons SET expire_at = 1`)
	require.NoError(t, err)
	locked := exec(`UPDATE user_coupons SET expire_at = 2`)
	// One that waits without end has everybody else wait behind it.
	lockedTable := exec(`ALTER TABLE user_coupons COMMENT 'changed'`)
	require.NoError(t, writer.Rollback())

	for name, c := range map[string]struct {
		err                  error
		duplicate, retryable bool
	}{
		"none":         {nil, false, false},
		"another":      {errors.New("another"), false, false},
		"duplicate":    {exec(coupon), true, false},
		"wrapped":      {fmt.Errorf("more: %w", exec(coupon)), true, false},
		"check":        {exec(`INSERT INTO sku_stock VALUES ('a', -1, 0, 0)`), false, false},
		"foreign":      {exec(`INSERT INTO order_items VALUES ('none', 'none', 1)`), false, false},
		"typed":        {exec(`INSERT INTO sku_stock VALUES ('a', 'many', 0, 0)`), false, false},
		"out of range": {exec(`INSERT INTO sku_stock VALUES ('a', 9223372036854775808, 0, 0)`), false, false},
		"locked":       {locked, false, true},
		"locked table": {lockedTable, false, true},
		"nothing sent": {fmt.Errorf("begin: %w", driver.ErrBadConn), false, true},
	} {
		if name != "none" {
			require.Error(t, c.err, name)
		}
		require.Equal(t, c.duplicate, d.Duplicate(c.err), "%s: %v", name, c.err)
		require.Equal(t, c.retryable, d.Retryable(c.err), "%s: %v", name, c.err)
	}
	require.Equal(t, "SELECT ?", d.Rebind("SELECT ?"))
}

func TestAConnectionThatTheServerEndsIsLost(t *testing.T) {
	t.Parallel()
	dsn := dbtest.MariaDB(t).DSN()
	db, operator := open(t, dsn), open(t, dsn)
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	_, err = operator.ExecContext(t.Context(), "KILL CONNECTION "+text(t, conn, `SELECT CONNECTION_ID()`))
	require.NoError(t, err)
	_, err = conn.ExecContext(t.Context(), `DO 1`)
	require.Error(t, err)
	require.True(t, mysql.Dialect{}.Lost(err) || mysql.Dialect{}.Retryable(err), "%v", err)
	for _, number := range []string{"1053", "1927", "3169", "4031"} {
		_, err = operator.ExecContext(t.Context(), `SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = `+number)
		require.True(t, mysql.Dialect{}.Lost(err), "%v", err)
	}
	_, err = operator.ExecContext(t.Context(), `NOT SQL`)
	require.False(t, mysql.Dialect{}.Lost(err), "%v", err)
	_, err = mysql.Open(t.Context(), "root@tcp(127.0.0.1:1)/shop")
	require.False(t, mysql.Dialect{}.Lost(err), "%v", err)
}

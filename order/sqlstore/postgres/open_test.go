package postgres_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/orderwheel/orderwheel/internal/dbtest"
	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/sqlstore"
	"github.com/orderwheel/orderwheel/order/sqlstore/postgres"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(dbtest.Stopping(m)) }

func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := postgres.Open(t.Context(), dsn)
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

// The server's own defaults are others.
func TestEachConnectionIsSetUp(t *testing.T) {
	t.Parallel()
	server := dbtest.StartPostgres(t, "-c", "default_transaction_isolation=serializable", "-c", "default_transaction_read_only=on")
	db := open(t, server.DSN("postgres"))
	for range 3 {
		conn, err := db.Conn(t.Context()) // held, so that the next is another
		require.NoError(t, err)
		defer conn.Close()
		require.Equal(t, "read committed", text(t, conn, `SHOW transaction_isolation`))
		require.Equal(t, "off", text(t, conn, `SHOW transaction_read_only`))
		require.Equal(t, "5s", text(t, conn, `SHOW lock_timeout`))
		require.Equal(t, "1min", text(t, conn, `SHOW idle_in_transaction_session_timeout`))
		require.Equal(t, "UTF8", text(t, conn, `SHOW client_encoding`))
	}
}

func TestTheTimeoutsOfTheDSNStand(t *testing.T) {
	t.Parallel()
	db := open(t, dbtest.Postgres(t).DSN()+"&lock_timeout=2s&idle_in_transaction_session_timeout=0")
	require.Equal(t, "2s", text(t, db, `SHOW lock_timeout`))
	require.Equal(t, "0", text(t, db, `SHOW idle_in_transaction_session_timeout`))
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ dsn, says string }{
		"not a DSN":          {"postgres://u:secret@h:port/x", "cannot parse"},
		"another isolation":  {"postgres://u:secret@127.0.0.1:1/x?default_transaction_isolation=serializable", "default_transaction_isolation is serializable: leave it out"},
		"read only":          {"host=127.0.0.1 port=1 default_transaction_read_only=on", "default_transaction_read_only is on"},
		"commits not kept":   {"postgres://u:secret@127.0.0.1:1/x?synchronous_commit=OFF", "synchronous_commit is OFF"},
		"another encoding":   {"postgres://u:secret@127.0.0.1:1/x?client_encoding=LATIN1", "client_encoding is LATIN1"},
		"what hides options": {"postgres://u:secret@127.0.0.1:1/x?options=-c%20synchronous_commit%3Doff", "by its own name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := postgres.Open(t.Context(), c.dsn)
			require.ErrorIs(t, err, order.ErrInvalid)
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), "secret")
		})
	}
}

func TestAServerThatIsNotThereIsAnError(t *testing.T) {
	t.Parallel()
	_, err := postgres.Open(t.Context(), "postgres://u:secret@127.0.0.1:1/x")
	require.ErrorContains(t, err, "open PostgreSQL")
	require.NotContains(t, err.Error(), "secret")
}

// A standby does not know yet what was paid.
func TestAStandbyIsRefused(t *testing.T) {
	t.Parallel()
	server := dbtest.StartPostgres(t)
	db, err := postgres.Open(t.Context(), server.DSN("postgres"))
	require.NoError(t, err)
	data := text(t, db, `SHOW data_directory`)
	require.NoError(t, db.Close())
	require.NoError(t, os.WriteFile(filepath.Join(data, "standby.signal"), nil, 0o644))
	require.NoError(t, server.Restart(t.Context()))
	_, err = postgres.Open(t.Context(), server.DSN("postgres"))
	require.ErrorContains(t, err, "read only")
}

func TestIdsCompareByBytes(t *testing.T) {
	t.Parallel()
	db := open(t, dbtest.Postgres(t).DSN())
	s := sqlstore.New(db, postgres.Dialect{})
	require.NoError(t, s.Migrate(t.Context()))
	ids := []string{"a", "A", "a ", "ä", "Ä", "a\\", "a'", "\t", "茶", "\U0001f375", strings.Repeat("x", 256)}
	for i, id := range ids {
		require.NoError(t, s.AddStock(t.Context(), id, int64(i+1)), "%q", id)
	}
	for i, id := range ids {
		require.Equal(t, fmt.Sprint(i+1), text(t, db, `SELECT stock FROM sku_stock WHERE sku_id = $1`, id), "%q", id)
	}
}

func TestTheDialectKnowsItsErrors(t *testing.T) {
	t.Parallel()
	db := open(t, dbtest.Postgres(t).DSN()+"&lock_timeout=10ms")
	d := postgres.Dialect{}
	require.NoError(t, sqlstore.New(db, d).Migrate(t.Context()))
	exec := func(q string) error { _, err := db.ExecContext(t.Context(), q); return err }
	coupon := `INSERT INTO user_coupons VALUES ('c', 'u', 'unused', NULL, 0)`
	require.NoError(t, exec(coupon))
	writer, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = writer.Exec(`UPDATE user_coupons SET expire_at = 1`)
	require.NoError(t, err)
	locked := exec(`UPDATE user_coupons SET expire_at = 2`)
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
		"nothing sent": {fmt.Errorf("begin: %w", driver.ErrBadConn), false, true},
	} {
		if name != "none" {
			require.Error(t, c.err, name)
		}
		require.Equal(t, c.duplicate, d.Duplicate(c.err), "%s: %v", name, c.err)
		require.Equal(t, c.retryable, d.Retryable(c.err), "%s: %v", name, c.err)
	}
}

func TestPlaceholdersAreNumbered(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                              "",
		"SELECT 1":                      "SELECT 1",
		"?":                             "$1",
		"a = ? AND b IN (?, ?) LIMIT ?": "a = $1 AND b IN ($2, $3) LIMIT $4",
		strings.Repeat("?,", 11):        "$1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,",
	} {
		require.Equal(t, want, postgres.Dialect{}.Rebind(in))
	}
}

func TestAConnectionThatTheServerEndsIsLost(t *testing.T) {
	t.Parallel()
	dsn := dbtest.Postgres(t).DSN()
	db, operator := open(t, dsn), open(t, dsn)
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	require.Equal(t, "true", text(t, operator, `SELECT pg_terminate_backend($1)`, text(t, conn, `SELECT pg_backend_pid()`)))
	_, err = conn.ExecContext(t.Context(), `SELECT 1`)
	require.Error(t, err)
	require.True(t, postgres.Dialect{}.Lost(err) || postgres.Dialect{}.Retryable(err), "%v", err)
	for _, code := range []string{"08P01", "08006", "25P03", "25P04", "57P01", "57P05"} {
		_, err = operator.ExecContext(t.Context(), `DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '`+code+`'; END $$`)
		require.True(t, postgres.Dialect{}.Lost(err), "%v", err)
	}
	_, err = operator.ExecContext(t.Context(), `NOT SQL`)
	require.False(t, postgres.Dialect{}.Lost(err), "%v", err)
	_, err = postgres.Open(t.Context(), "postgres://u@127.0.0.1:1/x")
	require.False(t, postgres.Dialect{}.Lost(err), "%v", err)
	_, err = postgres.Open(t.Context(), "postgres://u@"+refusing(t, "08P01")+"/x?sslmode=disable")
	require.ErrorContains(t, err, "08P01")
	require.False(t, postgres.Dialect{}.Lost(err), "%v", err)
}

// refusing is where a server listens that answers each client with an error, as a pooler does.
func refusing(t *testing.T, code string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	t.Cleanup(func() {
		require.NoError(t, listener.Close())
		<-done
	})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			server := pgproto3.NewBackend(conn, conn)
			if _, err := server.ReceiveStartupMessage(); err == nil {
				server.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: code, Message: "no such server"})
				_ = server.Flush()
			}
			_ = conn.Close()
		}
	}()
	return listener.Addr().String()
}

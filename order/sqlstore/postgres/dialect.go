package postgres

import (
	"database/sql/driver"
	"embed"
	"errors"
	"io"
	"io/fs"
	"net"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/orderwheel/orderwheel/order/sqlstore"
)

//go:embed migrations
var migrations embed.FS

// Dialect is PostgreSQL for sqlstore.New.
type Dialect struct{}

var _ sqlstore.Dialect = Dialect{}

// Migrations has the schema in PostgreSQL's words.
func (Dialect) Migrations() fs.FS { return migrations }

// MigrationLock is a lock of the transaction, by the name of the schema. Like any other lock it is
// waited for as long as lock_timeout says; the store then asks again.
func (Dialect) MigrationLock() (lock, unlock string) {
	return `SELECT TRUE FROM (SELECT pg_advisory_xact_lock(hashtext('orderwheel'), hashtext(current_schema()))) l`, ""
}

// Rebind numbers the placeholders: $1, $2, ...
func (Dialect) Rebind(query string) string {
	var b strings.Builder
	for n := 1; ; n++ {
		before, after, found := strings.Cut(query, "?")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString("$")
		b.WriteString(strconv.Itoa(n))
		query = after
	}
}

// SQLSTATEs.
const (
	uniqueViolation      = "23505"
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	lockNotAvailable     = "55P03" // lock_timeout is over
	adminShutdown        = "57P01" // the server stops, or an operator ended the session
	crashShutdown        = "57P02" // another session has crashed
	idleInTransaction    = "25P03" // idle_in_transaction_session_timeout is over
	transactionTooLong   = "25P04" // transaction_timeout is over
	idleSession          = "57P05" // idle_session_timeout is over
	connectionException  = "08"    // the class; pgbouncer says 08P01 when it has lost the server
)

// Retryable reports a deadlock, a serialization failure, a lock that others held too long, and a
// connection that was lost before the statement was sent.
func (Dialect) Retryable(err error) bool {
	switch sqlState(err) {
	case deadlockDetected, serializationFailure, lockNotAvailable:
		return true
	}
	return errors.Is(err, driver.ErrBadConn) || pgconn.SafeToRetry(err)
}

// Lost reports a connection that broke while it was in use, and what a server says that ends it. (It
// is no matter here that a connection could not be made.)
func (Dialect) Lost(err error) bool {
	var connect *pgconn.ConnectError
	made := !errors.As(err, &connect)
	switch code := sqlState(err); code {
	case "":
		var network *net.OpError
		return made && (errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) ||
			errors.Is(err, pgconn.ErrConnClosed) || errors.As(err, &network))
	case adminShutdown, crashShutdown, idleInTransaction, transactionTooLong, idleSession:
		return true
	default:
		return made && strings.HasPrefix(code, connectionException)
	}
}

// Duplicate reports whether a primary key or unique constraint was violated.
func (Dialect) Duplicate(err error) bool { return sqlState(err) == uniqueViolation }

// Indexed needs no hint: an index of just the rows that a page is of is the cheapest there is.
func (Dialect) Indexed(table, _ string) string { return table }

// SingleWriter is false: writers that touch different rows run at once.
func (Dialect) SingleWriter() bool { return false }

func sqlState(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

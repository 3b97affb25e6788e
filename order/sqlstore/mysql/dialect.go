package mysql

import (
	"database/sql/driver"
	"embed"
	"errors"
	"io/fs"

	"github.com/go-sql-driver/mysql"

	"github.com/orderwheel/orderwheel/order/sqlstore"
)

//go:embed migrations
var migrations embed.FS

// Dialect is MySQL and MariaDB for sqlstore.New.
type Dialect struct{}

var _ sqlstore.Dialect = Dialect{}

// Migrations has the schema in MySQL's words.
func (Dialect) Migrations() fs.FS { return migrations }

// MigrationLock is a lock of the connection, by the name of the database: DDL ends the transaction,
// and with it every lock of rows. It waits a second; the store then asks again.
func (Dialect) MigrationLock() (lock, unlock string) {
	const name = `CONCAT('orderwheel:', MD5(DATABASE()))`
	return `SELECT COALESCE(GET_LOCK(` + name + `, 1), 0)`, `DO RELEASE_LOCK(` + name + `)`
}

// Rebind changes nothing: MySQL's placeholder is the question mark.
func (Dialect) Rebind(query string) string { return query }

// Numbers of server errors.
const (
	recordChanged    = 1020 // ER_CHECKREAD: another transaction changed what a snapshot had read
	duplicateEntry   = 1062 // ER_DUP_ENTRY
	lockWaitTimeout  = 1205 // ER_LOCK_WAIT_TIMEOUT: rolls back the statement alone
	deadlock         = 1213 // ER_LOCK_DEADLOCK: rolls back the transaction
	serverShutdown   = 1053 // ER_SERVER_SHUTDOWN
	connectionKilled = 1927 // ER_CONNECTION_KILLED, of MariaDB
	sessionKilled    = 3169 // ER_SESSION_WAS_KILLED, of MySQL
	idleTooLong      = 4031 // ER_CLIENT_INTERACTION_TIMEOUT, of MySQL
)

// Retryable reports a deadlock, a lock that others held too long, and a connection that was lost
// before the statement was sent. A cluster (Galera, group replication) reports at COMMIT, as a
// deadlock, that a transaction lost against another node's: it is not applied then.
func (Dialect) Retryable(err error) bool {
	switch number(err) {
	case deadlock, lockWaitTimeout, recordChanged:
		return true
	}
	return errors.Is(err, driver.ErrBadConn) // the driver says so only if nothing was sent
}

// Lost reports what the driver says of a connection that broke while it was in use, or timed out, and
// what a server says that ends it.
func (Dialect) Lost(err error) bool {
	switch number(err) {
	case serverShutdown, connectionKilled, sessionKilled, idleTooLong:
		return true
	}
	return errors.Is(err, mysql.ErrInvalidConn)
}

// Duplicate reports whether a primary key or unique constraint was violated.
func (Dialect) Duplicate(err error) bool { return number(err) == duplicateEntry }

// Indexed forces the index. MySQL would take the primary key as well, since that needs no sort
// either, and read all orders that were paid or closed to fill a page of unpaid ones.
func (Dialect) Indexed(table, index string) string { return table + " FORCE INDEX (" + index + ")" }

// SingleWriter is false: writers that touch different rows run at once.
func (Dialect) SingleWriter() bool { return false }

func number(err error) uint16 {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}

package sqlite

import (
	"embed"
	"errors"
	"io/fs"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/orderwheel/orderwheel/order/sqlstore"
)

//go:embed migrations
var migrations embed.FS

// Dialect is SQLite for sqlstore.New.
type Dialect struct{}

var _ sqlstore.Dialect = Dialect{}

// Migrations has the schema in SQLite's words.
func (Dialect) Migrations() fs.FS { return migrations }

// MigrationLock is empty: a transaction has SQLite's one write lock from its begin on.
func (Dialect) MigrationLock() (lock, unlock string) { return "", "" }

// Rebind changes nothing: SQLite's placeholder is the question mark.
func (Dialect) Rebind(query string) string { return query }

// Retryable reports whether another connection held a lock for too long, or changed what a snapshot
// had read. SQLite applies nothing then, and the driver rolls a COMMIT that failed so back.
func (Dialect) Retryable(err error) bool {
	switch code(err) & 0xff { // the low byte is the primary code
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return true
	}
	return false
}

// Lost is false: a file has no connection to lose.
func (Dialect) Lost(error) bool { return false }

// Duplicate reports whether a primary key or unique constraint was violated.
func (Dialect) Duplicate(err error) bool {
	switch code(err) {
	case sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE:
		return true
	}
	return false
}

// Indexed needs no hint: an index of just the rows that a page is of is the cheapest there is.
func (Dialect) Indexed(table, _ string) string { return table }

// SingleWriter is true: SQLite has one writer at a time.
func (Dialect) SingleWriter() bool { return true }

func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return sqlite3.SQLITE_OK
}

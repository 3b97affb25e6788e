package sqlstore

import "io/fs"

// Dialect is what differs between databases. The store's statements keep to the SQL that SQLite,
// MySQL and PostgreSQL share, with ? for arguments: no upserts, no RETURNING. Row locks by SELECT
// (FOR UPDATE, SKIP LOCKED) are taken only where SingleWriter is false. So a dialect is a schema and
// these few methods.
type Dialect interface {
	// Migrations holds the files migrations/0001_word.sql, 0002_word.sql and so on, which Store.Migrate
	// applies. Each of their statements ends with a semicolon at the end of a line. What was released
	// is never edited: a change is a new file, and leaves what the version before it needs. Where the
	// database commits each statement of DDL by itself, each must do nothing when it is repeated.
	//
	// Ids must compare by bytes (BINARY, VARBINARY, "C"), or two ids that differ in case become one.
	Migrations() fs.FS

	// MigrationLock is a query that waits until this transaction alone migrates and answers true, or
	// false when others took too long; and a statement that gives the lock back where the end of the
	// transaction does not. Empty where a transaction that writes excludes all others.
	MigrationLock() (lock, unlock string)

	// Rebind turns the ?, ?, ... of a statement into the dialect's placeholders. No statement holds
	// a ? of another meaning.
	Rebind(query string) string

	// Retryable reports whether err says that the transaction could not go on because of others
	// (locked, deadlock, serialization failure, lock timeout) and is certain not to have been
	// applied, also where it is the answer to a COMMIT. The store rolls back and runs the whole
	// transaction again.
	Retryable(err error) bool

	// Lost reports whether err says that the connection was lost, or ended by the server, while it was
	// in use. A transaction whose COMMIT was not sent is not applied then, and the store runs it again;
	// after a COMMIT nobody knows.
	Lost(err error) bool

	// Duplicate reports whether err is the violation of a primary key or unique constraint.
	Duplicate(err error) bool

	// Indexed names a table in a FROM, with what the database needs to be told to read a page of it from
	// this index.
	Indexed(table, index string) string

	// SingleWriter reports whether the database runs one writing transaction at a time. The store
	// then queues its own, which is fair and costs nothing, instead of having them wait for the
	// database's lock.
	SingleWriter() bool
}

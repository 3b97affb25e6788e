package sqlstore

// Dialect is what differs between databases. The store's statements keep to the SQL that SQLite,
// MySQL and PostgreSQL share, with ? for arguments: no upserts, no RETURNING. Row locks by SELECT
// (FOR UPDATE, SKIP LOCKED) are taken only where SingleWriter is false. So a dialect is a schema and these few methods.
type Dialect interface {
	// Schema lists the statements that create the tables of this package where they are absent. Ids
	// must compare by bytes (BINARY, utf8mb4_bin, "C"), or two ids that differ in case become one.
	Schema() []string

	// Rebind turns the ?, ?, ... of a statement into the dialect's placeholders. No statement holds
	// a ? of another meaning.
	Rebind(query string) string

	// Retryable reports whether err says that the transaction could not go on because of others
	// (locked, deadlock, serialization failure, lock timeout) and is certain not to have been
	// applied, also where it is the answer to a COMMIT. The store rolls back and runs the whole
	// transaction again.
	Retryable(err error) bool

	// Duplicate reports whether err is the violation of a primary key or unique constraint.
	Duplicate(err error) bool

	// SingleWriter reports whether the database runs one writing transaction at a time. The store
	// then queues its own, which is fair and costs nothing, instead of having them wait for the
	// database's lock.
	SingleWriter() bool
}

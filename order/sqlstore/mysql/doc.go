// Package mysql opens MySQL (8.0.16 or newer) and MariaDB (10.6 or newer) for the sqlstore package.
// It is the one package here that imports github.com/go-sql-driver/mysql.
//
//	db, err := mysql.Open(ctx, "shop:secret@tcp(db.internal:3306)/shop")
//	store := sqlstore.New(db, mysql.Dialect{})
//	err = store.Migrate(ctx)
//
// # What Open sets, on each connection
//
//   - READ COMMITTED. The store's statements are right with it, and without the gap locks of MySQL's
//     default, REPEATABLE READ, by which orders with neighbouring numbers deadlock. (A server that
//     writes a binary log must not use binlog_format STATEMENT.)
//   - A strict sql_mode: a number that does not fit is an error, not another number.
//   - A lock is waited for 5 seconds, not 50: then the transaction is rolled back and run again.
//     Nor is the lock of a table waited for a day: a migration that does has all others wait
//     behind it.
//   - UPDATE counts the rows that it matched, as other databases do.
//   - Arguments are put into the statement by the driver (utf8mb4), one round trip a statement.
//   - Timeouts, where the DSN has none: 10 s to connect, 30 s to wait for an answer. (A migration of
//     a large table may take longer: give readTimeout to the program that migrates.)
//
// It refuses a DSN that sets what the store relies on, and a server that is read-only: a replica
// does not know yet what was paid, and a reconcile that reads it schedules what is done.
//
// # Durability
//
// An order that was closed is acknowledged to Redis right after its commit, and a payment confirmed
// to the payer. Keep the server's innodb_flush_log_at_trx_commit at 1, or a power loss takes the
// last second of them.
package mysql

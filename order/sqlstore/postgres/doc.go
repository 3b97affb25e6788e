// Package postgres opens PostgreSQL (12 or newer) for the sqlstore package. It is the one package
// here that imports github.com/jackc/pgx.
//
//	db, err := postgres.Open(ctx, "postgres://shop:secret@db.internal:5432/shop")
//	store := sqlstore.New(db, postgres.Dialect{})
//	err = store.Migrate(ctx)
//
// # What Open sets, on each connection
//
//   - READ COMMITTED, whatever the server's or the role's default is. The store's statements are
//     right with it; with stricter levels they are too, and run again more often.
//   - lock_timeout 5 s, where the DSN has none: a lock that others hold longer ends the statement,
//     and the transaction is run again.
//   - idle_in_transaction_session_timeout 60 s, where the DSN has none: the locks of a process that
//     vanished with its host are free after that.
//   - 10 s to connect, where the DSN has no connect_timeout.
//   - The primary. Of several hosts the one that takes writes is used; a standby does not know yet
//     what was paid, and a reconcile that reads it schedules what is done.
//
// These go to the server as it is connected to. A pooler in between must let them pass (PgBouncer:
// ignore_startup_parameters, and set them for the role); in its transaction mode, add
// default_query_exec_mode=exec to the DSN.
//
// It refuses a DSN that sets what the store relies on otherwise.
//
// # Durability
//
// An order that was closed is acknowledged to Redis right after its commit, and a payment confirmed
// to the payer: so synchronous_commit=off is refused in the DSN. Keep the server's fsync on.
//
// # Vacuum
//
// A page of Unpaid reads an index of the unpaid orders alone, from which PostgreSQL removes what was
// paid and closed when it vacuums. Autovacuum does so; where it is off, pages grow slow.
package postgres

package order_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/sqlstore/sqlite"
)

// bookings closes rows of a table of its own: a booking holds one seat of a show until pay_before,
// a DATETIME of whole seconds, UTC.
type bookings struct{ db *sql.DB }

var _ order.Closer = bookings{}

func (b bookings) Close(ctx context.Context, id string, now time.Time) (order.Result, error) {
	tx, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return order.Result{}, err
	}
	defer tx.Rollback() // of no effect after the commit

	// The state is tested by the statement that changes it. Format cuts now down to the second.
	res, err := tx.ExecContext(ctx, `UPDATE bookings SET state = 'lapsed' WHERE id = ? AND state = 'held' AND pay_before <= ?`,
		id, now.UTC().Format(time.DateTime))
	if err != nil {
		return order.Result{}, err
	}
	if n, err := res.RowsAffected(); err != nil {
		return order.Result{}, err
	} else if n == 0 {
		return whyNot(ctx, tx, id)
	}
	// Only the call that changed the row comes here, and the seat comes back in the same commit.
	_, err = tx.ExecContext(ctx, `UPDATE shows SET free = free + 1 WHERE id = (SELECT show_id FROM bookings WHERE id = ?)`, id)
	if err != nil {
		return order.Result{}, err
	}
	return order.Result{Outcome: order.ClosedNow}, tx.Commit()
}

func whyNot(ctx context.Context, tx *sql.Tx, id string) (order.Result, error) {
	var state string
	var payBefore time.Time
	err := tx.QueryRowContext(ctx, `SELECT state, pay_before FROM bookings WHERE id = ?`, id).Scan(&state, &payBefore)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return order.Result{Outcome: order.NotFound}, nil
	case err != nil:
		return order.Result{}, err
	case state == "lapsed":
		return order.Result{Outcome: order.ClosedAlready}, nil
	case state == "paid":
		return order.Result{Outcome: order.WasPaid}, nil
	}
	return order.Result{Outcome: order.NotYetDue, ExpireAt: payBefore}, nil
}

// ceilSecond is what such a column must hold, and what Schedule must be given: rounded up, so that
// nothing closes early.
func ceilSecond(t time.Time) time.Time {
	if s := t.Truncate(time.Second); s.Before(t) {
		return s.Add(time.Second)
	}
	return t
}

// An application with tables of its own, whose instants have whole seconds.
func Example_ownTables() {
	ctx := context.Background()
	db, clean := exampleDB(ctx)
	defer clean()
	run := func(query string, args ...any) {
		if _, err := db.ExecContext(ctx, query, args...); err != nil {
			log.Fatal(err)
		}
	}
	run(`CREATE TABLE shows (id TEXT PRIMARY KEY, free INTEGER NOT NULL)`)
	run(`CREATE TABLE bookings (id TEXT PRIMARY KEY, show_id TEXT NOT NULL, state TEXT NOT NULL, pay_before DATETIME NOT NULL)`)
	run(`INSERT INTO shows VALUES ('tonight', 9)`)
	expireAt := ceilSecond(time.Date(2026, 5, 1, 12, 29, 59, 1, time.UTC))
	run(`INSERT INTO bookings VALUES ('b1', 'tonight', 'held', ?)`, expireAt.Format(time.DateTime))

	b := bookings{db}
	for _, now := range []time.Time{expireAt.Add(-time.Millisecond), expireAt, expireAt} {
		res, err := b.Close(ctx, "b1", now) // the engine calls it, with its clock
		fmt.Println(now.Format("15:04:05.000"), res, err)
	}
	var free int
	err := db.QueryRowContext(ctx, `SELECT free FROM shows`).Scan(&free)
	fmt.Println("free seats:", free, err)
	// Output:
	// 12:29:59.999 not yet <nil>
	// 12:30:00.000 closed <nil>
	// 12:30:00.000 already closed <nil>
	// free seats: 10 <nil>
}

// exampleDB is a database in a folder that clean removes.
func exampleDB(ctx context.Context) (db *sql.DB, clean func()) {
	dir, err := os.MkdirTemp("", "order")
	if err != nil {
		log.Fatal(err)
	}
	db, err = sqlite.Open(ctx, filepath.Join(dir, "bookings.db"))
	if err != nil {
		log.Fatal(err)
	}
	return db, func() {
		_ = db.Close()
		_ = os.RemoveAll(dir)
	}
}

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/orderwheel/orderwheel/examples/internal/local"
	"github.com/orderwheel/orderwheel/executor"
)

const schema = `
CREATE TABLE group_buys (
    id        TEXT    NOT NULL PRIMARY KEY,
    needs     INTEGER NOT NULL CHECK (needs > 0),
    joined    INTEGER NOT NULL CHECK (joined BETWEEN 0 AND needs),
    status    TEXT    NOT NULL CHECK (status IN ('open', 'filled', 'failed')),
    expire_at INTEGER NOT NULL -- Unix milliseconds
) STRICT;
CREATE TABLE members (
    group_id   TEXT    NOT NULL REFERENCES group_buys (id),
    user_id    TEXT    NOT NULL,
    payment_id TEXT    NOT NULL UNIQUE,
    amount     INTEGER NOT NULL CHECK (amount > 0),
    PRIMARY KEY (group_id, user_id)
) STRICT;
CREATE TABLE refunds ( -- sending them is the payment service's; the key keeps a payment from being refunded twice
    payment_id TEXT    NOT NULL PRIMARY KEY,
    amount     INTEGER NOT NULL,
    at         INTEGER NOT NULL
) STRICT;`

var errNotOpen = errors.New("it is full, over or unknown")

// groups are group buys: enough members pay in time, or everyone gets the money back.
//
//	open -> filled | failed
type groups struct{ db *sql.DB }

func (g groups) open(ctx context.Context, id string, needs int, expireAt time.Time) error {
	_, err := g.db.ExecContext(ctx, `INSERT INTO group_buys (id, needs, joined, status, expire_at) VALUES (?, ?, 0, 'open', ?)`,
		id, needs, expireAt.UnixMilli())
	return err
}

// join takes a member who has paid. filled: it was the last one that was needed. The money of one
// who is too late is the caller's to give back.
func (g groups) join(ctx context.Context, id, user, payment string, amount int64, now time.Time) (filled bool, err error) {
	err = local.InTx(ctx, g.db, func(tx *sql.Tx) error {
		n, err := local.Changed(tx.ExecContext(ctx, `
			UPDATE group_buys SET joined = joined + 1, status = CASE WHEN joined + 1 = needs THEN 'filled' ELSE 'open' END
			WHERE id = ? AND status = 'open' AND expire_at > ?`, id, now.UnixMilli()))
		if err != nil {
			return err
		}
		if n == 0 {
			return fmt.Errorf("join group %q: %w", id, errNotOpen)
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO members (group_id, user_id, payment_id, amount) VALUES (?, ?, ?, ?)`,
			id, user, payment, amount)
		if err != nil {
			return fmt.Errorf("join group %q: %w", id, err)
		}
		return tx.QueryRowContext(ctx, `SELECT status = 'filled' FROM group_buys WHERE id = ?`, id).Scan(&filled)
	})
	return filled && err == nil, err
}

// expire is the engine's handler. Only the run whose UPDATE changes the row records the refunds of
// all members, in the same transaction: however often it runs, that happens once.
func (g groups) expire(ctx context.Context, t executor.Task) error {
	return local.InTx(ctx, g.db, func(tx *sql.Tx) error {
		n, err := local.Changed(tx.ExecContext(ctx,
			`UPDATE group_buys SET status = 'failed' WHERE id = ? AND status = 'open' AND expire_at <= ?`, t.ID, t.Now.UnixMilli()))
		if err != nil {
			return err
		}
		if n == 0 {
			return whyNot(ctx, tx, t.ID)
		}
		_, err = tx.ExecContext(ctx,
			`INSERT INTO refunds (payment_id, amount, at) SELECT payment_id, amount, ? FROM members WHERE group_id = ?`, t.Now.UnixMilli(), t.ID)
		return err
	})
}

// whyNot is nil where nothing is left to do: the group was filled, or has failed before.
func whyNot(ctx context.Context, tx *sql.Tx, id string) error {
	var status string
	var expireMS int64
	err := tx.QueryRowContext(ctx, `SELECT status, expire_at FROM group_buys WHERE id = ?`, id).Scan(&status, &expireMS)
	switch {
	case err != nil:
		return fmt.Errorf("group %q: %w", id, err) // unknown: it has not been committed yet, so try again
	case status == "open":
		return executor.RetryAt(time.UnixMilli(expireMS)) // its instant was moved
	}
	return nil
}

// state is what has become of a group.
type state struct {
	status                  string
	needs, members, refunds int
	refunded                int64
}

func (s state) String() string {
	return fmt.Sprintf("%s with %d of %d; %d payments refunded, %d in all", s.status, s.members, s.needs, s.refunds, s.refunded)
}

func (g groups) state(ctx context.Context, id string) (s state, err error) {
	err = g.db.QueryRowContext(ctx, `
		SELECT status, needs, count(m.payment_id), count(r.payment_id), coalesce(sum(r.amount), 0)
		FROM group_buys AS g LEFT JOIN members AS m ON m.group_id = g.id LEFT JOIN refunds AS r ON r.payment_id = m.payment_id
		WHERE g.id = ? GROUP BY g.id`, id).Scan(&s.status, &s.needs, &s.members, &s.refunds, &s.refunded)
	return s, err
}

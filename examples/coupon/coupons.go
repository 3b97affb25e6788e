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
CREATE TABLE campaigns (
    id    TEXT    NOT NULL PRIMARY KEY,
    quota INTEGER NOT NULL CHECK (quota >= 0) -- coupons that it may still give
) STRICT;
CREATE TABLE coupons (
    id          TEXT    NOT NULL PRIMARY KEY,
    campaign_id TEXT    NOT NULL REFERENCES campaigns (id),
    user_id     TEXT    NOT NULL,
    status      TEXT    NOT NULL CHECK (status IN ('unused', 'used', 'expired')),
    expire_at   INTEGER NOT NULL -- Unix milliseconds
) STRICT;`

var errNoneLeft = errors.New("the campaign has no coupon left")

// coupons are the coupons that campaigns give to users. A campaign gets a coupon that was not used
// back, to give it to somebody else.
//
//	unused -> used | expired
type coupons struct{ db *sql.DB }

// grant gives a user a coupon of a campaign.
func (c coupons) grant(ctx context.Context, id, campaign, user string, expireAt time.Time) error {
	return local.InTx(ctx, c.db, func(tx *sql.Tx) error {
		n, err := local.Changed(tx.ExecContext(ctx, `UPDATE campaigns SET quota = quota - 1 WHERE id = ? AND quota > 0`, campaign))
		if err != nil {
			return err
		}
		if n == 0 {
			return fmt.Errorf("grant %s: campaign %q: %w", id, campaign, errNoneLeft)
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO coupons (id, campaign_id, user_id, status, expire_at) VALUES (?, ?, ?, 'unused', ?)`,
			id, campaign, user, expireAt.UnixMilli())
		return err
	})
}

// use spends a coupon. False: it is used, expired or unknown. One that is past its instant and not
// expired yet cannot be used either.
func (c coupons) use(ctx context.Context, id string, now time.Time) (bool, error) {
	n, err := local.Changed(c.db.ExecContext(ctx,
		`UPDATE coupons SET status = 'used' WHERE id = ? AND status = 'unused' AND expire_at > ?`, id, now.UnixMilli()))
	return n > 0, err
}

// expire is the engine's handler. Only the run whose UPDATE changes the row gives the campaign its
// coupon back, in the same transaction: however often it runs, that happens once.
func (c coupons) expire(ctx context.Context, t executor.Task) error {
	return local.InTx(ctx, c.db, func(tx *sql.Tx) error {
		n, err := local.Changed(tx.ExecContext(ctx,
			`UPDATE coupons SET status = 'expired' WHERE id = ? AND status = 'unused' AND expire_at <= ?`, t.ID, t.Now.UnixMilli()))
		if err != nil {
			return err
		}
		if n == 0 {
			return whyNot(ctx, tx, t.ID)
		}
		_, err = tx.ExecContext(ctx,
			`UPDATE campaigns SET quota = quota + 1 WHERE id = (SELECT campaign_id FROM coupons WHERE id = ?)`, t.ID)
		return err
	})
}

// whyNot is nil where nothing is left to do: the coupon was used, or has expired before.
func whyNot(ctx context.Context, tx *sql.Tx, id string) error {
	var status string
	var expireMS int64
	err := tx.QueryRowContext(ctx, `SELECT status, expire_at FROM coupons WHERE id = ?`, id).Scan(&status, &expireMS)
	switch {
	case err != nil:
		return fmt.Errorf("coupon %q: %w", id, err) // unknown: its grant has not committed yet, so try again
	case status == "unused":
		return executor.RetryAt(time.UnixMilli(expireMS)) // its instant was moved
	}
	return nil
}

// tally counts coupons by status.
type tally struct{ unused, used, expired, quota int }

func (t tally) String() string {
	return fmt.Sprintf("%d unused, %d used, %d expired; %d to give", t.unused, t.used, t.expired, t.quota)
}

func (c coupons) tally(ctx context.Context) (t tally, err error) {
	err = c.db.QueryRowContext(ctx, `
		SELECT count(*) FILTER (WHERE status = 'unused'), count(*) FILTER (WHERE status = 'used'), count(*) FILTER (WHERE status = 'expired'),
			(SELECT sum(quota) FROM campaigns)
		FROM coupons`).Scan(&t.unused, &t.used, &t.expired, &t.quota)
	return t, err
}

package main

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/orderwheel/orderwheel/order/sqlstore"
	"github.com/orderwheel/orderwheel/order/sqlstore/sqlite"
)

const namespace = "drill"

// place is what all processes of a round share: the database and Redis.
type place struct {
	store *sqlstore.Store
	redis *redis.Client
}

// openPlace opens both. With st, the steps that lie in their clients are passed.
func openPlace(ctx context.Context, j job, st *steps) (*place, error) {
	// A killed process loses no commit, synced or not: only a power failure does.
	c, err := sqlite.Connector(filepath.Join(j.Dir, "orders.db"), sqlite.Options{Sync: sqlite.SyncNormal})
	if err != nil {
		return nil, err
	}
	if st != nil {
		c = &sqlSteps{c, st}
	}
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(maxConns)
	db.SetMaxIdleConns(maxConns)
	p := &place{
		store: sqlstore.New(db, sqlite.Dialect{}), // of the connections one at a time writes
		redis: redis.NewClient(&redis.Options{
			Addr: j.Redis, ContextTimeoutEnabled: true,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		}),
	}
	if err := retryBusy(ctx, db.PingContext); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

const maxConns = 8

func (p *place) close() error { return errors.Join(p.redis.Close(), p.store.DB().Close()) }

// retryBusy calls again while the database is locked, by a process that stands
// still for one: not for ever, but longer than any of them does.
func retryBusy(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, busyWithin)
	defer cancel()
	for {
		err := call(ctx)
		if err == nil || !(sqlite.Dialect{}).Retryable(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(10 * time.Millisecond):
		}
	}
}

const busyWithin = 30 * time.Second // a hang

// tally is how far a round is, in orders.
type tally struct{ created, paid, closed, open int64 }

func (p *place) tally(ctx context.Context) (t tally, err error) {
	err = retryBusy(ctx, func(ctx context.Context) error {
		return p.store.DB().QueryRowContext(ctx, `
			SELECT count(*), count(*) FILTER (WHERE status = 'paid'), count(*) FILTER (WHERE status = 'closed'),
				count(*) FILTER (WHERE status = 'unpaid')
			FROM orders`).Scan(&t.created, &t.paid, &t.closed, &t.open)
	})
	return t, err
}

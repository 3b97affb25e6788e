// Package local gives an example what it needs without any server: a Redis in this process, and a
// SQLite file in a temporary folder, both gone when the example ends; and transactions on it.
package local

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/orderwheel/orderwheel/order/sqlstore/sqlite"
)

// Place is where an example runs.
type Place struct {
	Redis *redis.Client
	DB    *sql.DB

	server *miniredis.Miniredis
	dir    string
}

// Open opens a place with the tables that schema creates.
func Open(ctx context.Context, schema string) (p *Place, err error) {
	p = &Place{server: miniredis.NewMiniRedis()}
	if err := p.server.Start(); err != nil {
		return nil, fmt.Errorf("start a Redis in this process: %w", err)
	}
	p.Redis = redis.NewClient(&redis.Options{
		Addr: p.server.Addr(), ContextTimeoutEnabled: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	if p.dir, err = os.MkdirTemp("", "orderwheel-example-"); err != nil {
		return nil, err
	}
	p.DB, err = sqlite.OpenWith(ctx, filepath.Join(p.dir, "example.db"), sqlite.Options{Sync: sqlite.SyncNormal})
	if err != nil {
		return nil, err
	}
	p.DB.SetMaxOpenConns(1) // SQLite has one writer: here the others queue for it, and never find it locked
	_, err = p.DB.ExecContext(ctx, schema)
	return p, err
}

// Close closes the place and removes its files.
func (p *Place) Close() error {
	err := p.Redis.Close()
	p.server.Close()
	if p.DB != nil {
		err = errors.Join(err, p.DB.Close())
	}
	if p.dir != "" {
		err = errors.Join(err, os.RemoveAll(p.dir))
	}
	return err
}

// ErrTooSlow says that what an example does in time took longer: the machine is busy.
var ErrTooSlow = errors.New("the machine is too busy: the time was over before the example had come so far; run it again")

// Patiently runs an example that has a time, from 2 s on, for what it does before the time is over:
// with twice as much as long as it answers ErrTooSlow. It returns the time that was enough.
func Patiently(run func(time.Duration) error) (enough time.Duration, err error) {
	for enough = 2 * time.Second; ; enough *= 2 {
		if err = run(enough); !errors.Is(err, ErrTooSlow) || enough > time.Minute {
			return enough, err
		}
	}
}

// Until asks again and again until done says true.
func Until(ctx context.Context, done func() (bool, error)) error {
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

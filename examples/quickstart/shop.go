package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/examples/internal/audit"
	"github.com/orderwheel/orderwheel/order/sqlstore"
	"github.com/orderwheel/orderwheel/order/sqlstore/sqlite"
)

// How long the end of a run may take; only a Redis that is away makes it take
// long.
const (
	stopWithin   = 5 * time.Second
	reportWithin = 10 * time.Second
)

// shop is an order app with its database, its engine and its auditor.
type shop struct {
	store     *sqlstore.Store
	engine    *orderwheel.Engine
	audit     *audit.Audit
	redis     *redis.Client
	namespace string
	closers   []func() error // to be called last to first
}

// openShop opens all that a shop needs. The engine is not started.
func openShop(ctx context.Context, o options, log io.Writer) (_ *shop, err error) {
	s := &shop{namespace: newNamespace()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	client, closeRedis, err := openRedis(ctx, o.redis)
	if err != nil {
		return nil, err
	}
	s.redis = client
	s.onClose(closeRedis)

	dir, err := s.folder(o.db)
	if err != nil {
		return nil, err
	}
	// A sync for each commit would only wear the disk: what is here is thrown away.
	db, err := sqlite.OpenWith(ctx, filepath.Join(dir, "orders.db"), sqlite.Options{Sync: sqlite.SyncNormal})
	if err != nil {
		return nil, err
	}
	s.onClose(db.Close)
	s.store = sqlstore.New(db, sqlite.Dialect{})
	if err := s.store.Migrate(ctx); err != nil {
		return nil, err
	}
	s.audit, err = audit.Open(ctx, audit.Config{DB: db, Redis: client, Namespace: s.namespace, Dir: dir})
	if err != nil {
		return nil, err
	}
	s.onClose(s.audit.Close)

	level := slog.LevelWarn
	if o.redis == nil {
		level = slog.LevelError // the warnings would be of what the Redis in the process cannot tell of itself
	}
	s.engine, err = orderwheel.New(orderwheel.Config{
		Redis:     client,
		Handler:   s.audit.Wrap(orderwheel.Closing(s.store)),
		Namespace: s.namespace,
		Logger:    slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: level})),
	})
	return s, err
}

// folder is the one for the database: dir, which must not have one, or a
// temporary one, removed when the shop closes.
func (s *shop) folder(dir string) (string, error) {
	if dir == "" {
		dir, err := os.MkdirTemp("", "orderwheel-quickstart-")
		if err == nil {
			s.onClose(func() error { return os.RemoveAll(dir) })
		}
		return dir, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	db := filepath.Join(dir, "orders.db")
	if _, err := os.Lstat(db); !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("%s exists, or cannot be looked at: use another folder", db)
	}
	return dir, nil
}

func (s *shop) onClose(f func() error) { s.closers = append(s.closers, f) }

func (s *shop) close() error {
	var errs []error
	for _, f := range slices.Backward(s.closers) {
		errs = append(errs, f())
	}
	s.closers = nil
	return errors.Join(errs...)
}

// settle stops the engine and lets the audit report; nil if it cannot. When the
// run was finished, Redis must have no task any more. In any case nothing of
// this run stays in Redis.
func (s *shop) settle(ctx context.Context, finished bool) (*audit.Report, error) {
	ctx = context.WithoutCancel(ctx)
	stopping, cancel := context.WithTimeout(ctx, stopWithin)
	defer cancel()
	stopErr := s.engine.Stop(stopping)
	ctx, cancel = context.WithTimeout(ctx, reportWithin)
	defer cancel()
	report, err := s.audit.Report(ctx)
	if err != nil {
		return nil, errors.Join(stopErr, err)
	}
	tasks, err := s.audit.Tasks(ctx)
	if finished && tasks > 0 {
		err = fmt.Errorf("no order is open, but Redis still has %s", count(int(tasks), "task"))
	}
	return &report, errors.Join(stopErr, err, removeKeys(ctx, s.redis, s.namespace))
}

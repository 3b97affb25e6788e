package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/order/sqlstore"
)

// openApp opens the database and Redis, starts the engine and the scan, and gives the api. Call
// closeApp at the end, also after an error.
func openApp(ctx context.Context, o options, log *slog.Logger) (a *api, closeApp func() error, err error) {
	var closers []func() error // to be called last to first
	closeApp = func() error {
		var errs []error
		for _, f := range slices.Backward(closers) {
			errs = append(errs, f())
		}
		return errors.Join(errs...)
	}
	store, dialect, err := openStore(ctx, o, sqlstore.Options{MaxUnpaid: o.maxUnpaid, Logger: log})
	if err != nil {
		return nil, closeApp, err
	}
	closers = append(closers, store.DB().Close)
	a = &api{
		shop:    &shop{store: store, share: o.share, timeToPay: o.timeToPay, log: log},
		trigger: o.trigger, dialect: dialect, log: log,
	}
	if o.trigger != triggerScan {
		client, closeRedis, err := openRedis(ctx, o.redis, log)
		if err != nil {
			return nil, closeApp, err
		}
		closers = append(closers, closeRedis)
		engine, err := orderwheel.New(engineConfig(o, store, client, log))
		if err != nil {
			return nil, closeApp, err
		}
		if err := engine.Start(ctx); err != nil {
			return nil, closeApp, err
		}
		closers = append(closers, func() error {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
			defer cancel()
			return engine.Stop(ctx)
		})
		a.shop.engine = engine
	}
	a.scan = &scan{store: store, dialect: dialect, share: o.share, now: a.shop.now, next: o.nextScan(), log: log}
	scanning, stopScan := context.WithCancel(context.WithoutCancel(ctx))
	var scans sync.WaitGroup
	scans.Go(func() { a.scan.run(scanning) })
	closers = append(closers, func() error {
		stopScan()
		scans.Wait()
		return nil
	})
	return a, closeApp, nil
}

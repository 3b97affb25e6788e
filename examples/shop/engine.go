package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/executor"
	"github.com/orderwheel/orderwheel/order/sqlstore"
)

const namespace = "shop"

// engineConfig is the engine of the orders. All instances of the app share its namespace.
func engineConfig(o options, store *sqlstore.Store, client redis.UniversalClient, log *slog.Logger) orderwheel.Config {
	c := orderwheel.Config{
		Redis:        client,
		BatchHandler: orderwheel.ClosingMany(store),
		Namespace:    namespace,
		Source:       sharedSource{store, o.share}, // brings back what Redis has lost
		OnDead: func(_ context.Context, d executor.Dead) {
			log.Error("ORDER NOT CLOSED: look into the reason, then requeue it",
				slog.String("order", d.ID), slog.Int("attempts", d.Attempt), slog.String("reason", d.Reason))
		},
		Logger: log,
	}
	if o.tune != nil {
		o.tune(&c)
	}
	return c
}

// nextScan says when the scan looks: every so often, or once a night.
func (o options) nextScan() func(time.Time) time.Time {
	if o.trigger == triggerEngine {
		return o.nightly.after
	}
	return func(now time.Time) time.Time { return now.Add(o.scanEvery) }
}

package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const reachWithin = 3 * time.Second

// openRedis connects to the Redis that o names, or to one in this process where o is nil.
func openRedis(ctx context.Context, o *redis.Options, log *slog.Logger) (client *redis.Client, closeRedis func() error, err error) {
	closeServer := func() {}
	if o == nil {
		mini := miniredis.NewMiniRedis()
		if err := mini.Start(); err != nil {
			return nil, nil, fmt.Errorf("start a Redis in this process: %w", err)
		}
		o = &redis.Options{Addr: mini.Addr()}
		closeServer = mini.Close
		log.Warn("NO REDIS GIVEN: one in this process serves. It forgets every task at exit; at the next start " +
			"the orders are read from the database. For trying out only: give -redis in earnest.")
	}
	o.ContextTimeoutEnabled = true // a ctx also cuts a call that waits for its reply
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	client = redis.NewClient(o)
	closeRedis = func() error {
		defer closeServer()
		return client.Close()
	}
	ctx, cancel := context.WithTimeout(ctx, reachWithin)
	defer cancel()
	if err := client.Ping(ctx).Err(); err != nil {
		_ = closeRedis()
		return nil, nil, fmt.Errorf("no Redis answers at %s: %w: start it, or correct -redis", o.Addr, err)
	}
	return client, closeRedis, nil
}

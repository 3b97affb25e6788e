package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const reachWithin = 3 * time.Second

// openRedis connects to the Redis that o names, or to one in the process where
// o is nil. Call closeRedis when it is not needed any more.
func openRedis(ctx context.Context, o *redis.Options) (client *redis.Client, closeRedis func() error, err error) {
	closeServer := func() {}
	if o == nil {
		mini := miniredis.NewMiniRedis()
		if err := mini.Start(); err != nil {
			return nil, nil, fmt.Errorf("start a Redis in the process: %w", err)
		}
		o = &redis.Options{Addr: mini.Addr()}
		closeServer = mini.Close
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
		return nil, nil, fmt.Errorf("no Redis answers at %s: %w", o.Addr, err)
	}
	return client, closeRedis, nil
}

// newNamespace is one that no other run has.
func newNamespace() string {
	return "quickstart-" + strings.ToLower(rand.Text()[:12])
}

// removeKeys removes what the engine leaves in Redis when it has no task: a
// service would keep it, but this namespace is never used again.
func removeKeys(ctx context.Context, client *redis.Client, namespace string) error {
	match := "{" + namespace + ":*" // nothing in a namespace of ours is special to MATCH
	for keys := client.Scan(ctx, 0, match, 1000).Iterator(); ; {
		if !keys.Next(ctx) {
			return keys.Err()
		}
		if err := client.Unlink(ctx, keys.Val()).Err(); err != nil {
			return err
		}
	}
}

// clockAhead is how far the clock of Redis is ahead of this machine's; 0 where
// the difference may be the time of the round trip.
func clockAhead(ctx context.Context, client *redis.Client) (time.Duration, error) {
	sent := time.Now()
	now, err := client.Time(ctx).Result()
	received := time.Now()
	switch {
	case err != nil:
		return 0, fmt.Errorf("read the clock of Redis: %w", err)
	case now.Before(sent):
		return now.Sub(sent), nil
	case now.After(received):
		return now.Sub(received), nil
	}
	return 0, nil
}

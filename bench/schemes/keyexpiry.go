package main

import (
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/orderwheel/orderwheel/bench/internal/scheme"
)

// keyExpiry keeps a key with a time to live for each order, and listens for Redis to say
// that it has expired (notify-keyspace-events Ex).
//
// Where it is used: where Redis is there already and somebody found the setting. Nothing
// polls, and a paid order is one DEL.
//
// What it risks: Redis says so when it removes the key, not when it expires: a background
// cycle finds what nobody reads, some at a time. It says so once, to those who listen
// at that moment, and to all of them: with nobody there the order is never closed, with two
// instances it is closed by both. An evicted key says nothing of the kind. The channel is of the
// whole database, so every expired key arrives, and the prefix must be looked at first.
type keyExpiry struct {
	env    *scheme.Env
	events *redis.PubSub
	loops  *scheme.Loops
	pool   *scheme.Pool
}

const (
	expiryPrefix  = "order:expire:"
	expiryChannel = "__keyevent@0__:expired"
)

func newKeyExpiry(env *scheme.Env) scheme.Scheme {
	return &keyExpiry{env: env, pool: scheme.NewPool(env.Workers)}
}

func (s *keyExpiry) Start(ctx context.Context) error {
	if err := s.env.Redis.ConfigSet(ctx, "notify-keyspace-events", "Ex").Err(); err != nil {
		return err
	}
	s.loops = scheme.NewLoops(ctx)
	s.events = s.env.Redis.Subscribe(s.loops.Context(), expiryChannel)
	if _, err := s.events.Receive(ctx); err != nil { // the subscription's answer
		return err
	}
	events := s.events.Channel(redis.WithChannelSize(eventBuffer), redis.WithChannelSendTimeout(time.Minute))
	s.loops.Go(func(ctx context.Context) {
		for {
			select {
			case e, more := <-events:
				if !more {
					return
				}
				s.expired(ctx, e.Payload)
			case <-ctx.Done():
				return
			}
		}
	})
	return nil
}

// eventBuffer is how many events may wait; more than that wait in the connection.
const eventBuffer = 1000

func (s *keyExpiry) expired(ctx context.Context, key string) {
	id, ours := strings.CutPrefix(key, expiryPrefix)
	if !ours {
		return
	}
	s.pool.Go(func() {
		if err := s.env.Handle(context.WithoutCancel(ctx), id); err != nil {
			alarm(ctx, s.env, "close", err) // and it is gone
		}
	})
}

func (s *keyExpiry) Add(ctx context.Context, o scheme.Order) error {
	return s.env.Redis.SetArgs(ctx, expiryPrefix+o.ID, o.ID, redis.SetArgs{ExpireAt: o.ExpireAt}).Err()
}

func (s *keyExpiry) Remove(ctx context.Context, id string) error {
	return s.env.Redis.Del(ctx, expiryPrefix+id).Err()
}

func (s *keyExpiry) Stop() {
	s.loops.Stop()
	_ = s.events.Close()
	s.pool.Wait()
}

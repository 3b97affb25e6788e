package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/orderwheel/orderwheel/bench/internal/scheme"
)

// zsetPoll keeps the orders in a ZSet, scored by when they expire, and looks at the
// first again and again. Who removes one (ZREM says 1) closes it: so two instances never
// close the same. One at a time. What fails is added again, half a minute later, three times; then
// there is an alarm.
//
// Where it is used: it is the listing that most articles on Redis end with.
//
// What it risks: an order is closed up to an interval late. Redis is asked at each
// interval, also when nothing is due. What was removed and not yet closed when the process
// dies is in no place any more: one order at a time, here.
type zsetPoll struct {
	env   *scheme.Env
	loops *scheme.Loops
}

const (
	zsetKey    = "order:delay"
	retriesKey = "order:retries" // hash: id -> how often it was added again
	retryAfter = 30 * time.Second
	maxRetries = 3
)

func newZSetPoll(env *scheme.Env) scheme.Scheme { return &zsetPoll{env: env} }

func (s *zsetPoll) Start(ctx context.Context) error {
	s.loops = scheme.NewLoops(ctx)
	s.loops.Every(s.env.Every, s.poll)
	return nil
}

// poll closes what is due, one at a time.
func (s *zsetPoll) poll(ctx context.Context) {
	for ctx.Err() == nil {
		ids, err := dueIn(ctx, s.env.Redis, zsetKey, 1)
		if err != nil {
			alarm(ctx, s.env, "poll", err)
			return
		}
		if len(ids) == 0 {
			return
		}
		if err := s.close(context.WithoutCancel(ctx), ids[0]); err != nil {
			alarm(ctx, s.env, "close", err)
			return
		}
	}
}

func (s *zsetPoll) close(ctx context.Context, id string) error {
	removed, err := s.env.Redis.ZRem(ctx, zsetKey, id).Result()
	if err != nil || removed == 0 { // 0: another instance has it
		return err
	}
	if err := s.env.Handle(ctx, id); err != nil {
		return addAgain(ctx, s.env, id, err)
	}
	return nil
}

// addAgain puts what has failed back into the ZSet for later, or gives it up.
func addAgain(ctx context.Context, env *scheme.Env, id string, why error) error {
	n, err := env.Redis.HIncrBy(ctx, retriesKey, id, 1).Result()
	if err != nil {
		return errors.Join(why, err)
	}
	if n > maxRetries {
		env.Alarm("given up: order "+id, why)
		return env.Redis.HDel(ctx, retriesKey, id).Err()
	}
	return env.Redis.ZAdd(ctx, zsetKey, member(id, time.Now().Add(env.Scaled(retryAfter)))).Err()
}

func (s *zsetPoll) Add(ctx context.Context, o scheme.Order) error {
	return s.env.Redis.ZAdd(ctx, zsetKey, member(o.ID, o.ExpireAt)).Err()
}

func (s *zsetPoll) Remove(ctx context.Context, id string) error {
	return s.env.Redis.ZRem(ctx, zsetKey, id).Err()
}

func (s *zsetPoll) Stop() { s.loops.Stop() }

func member(id string, due time.Time) redis.Z {
	return redis.Z{Score: float64(due.UnixMilli()), Member: id}
}

// dueIn are the first ids of a ZSet whose time has come: ZRANGE BYSCORE, as ZRANGEBYSCORE is
// called now.
func dueIn(ctx context.Context, r *redis.Client, key string, limit int64) ([]string, error) {
	return r.ZRangeArgs(ctx, redis.ZRangeArgs{
		Key: key, ByScore: true, Start: "0", Stop: strconv.FormatInt(time.Now().UnixMilli(), 10), Count: limit,
	}).Result()
}

package main

import (
	"context"
	"crypto/rand"
	_ "embed" // zsetlock.lua
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/orderwheel/orderwheel/bench/internal/scheme"
)

// zsetLock keeps each order as a hash, and in a ZSet. Who finds one due takes a lock of
// its own (SET NX with a time to live), closes it, and only then removes it: so a process that
// dies loses nothing, and another closes it when the lock has run out.
//
// Where it is used: where the articles turn to several instances, mostly with Redisson.
//
// What it risks: five commands an order. All instances read the same first orders and try for
// the same locks. A close that takes longer than its lock is done twice.
type zsetLock struct {
	env   *scheme.Env
	loops *scheme.Loops
}

const (
	taskPrefix = "order:task:"
	lockPrefix = "order:lock:"
	lockFor    = 30 * time.Second
)

// unlock deletes a lock that is still ours.
//
//go:embed zsetlock.lua
var unlockText string

var unlock = redis.NewScript(unlockText)

func newZSetLock(env *scheme.Env) scheme.Scheme { return &zsetLock{env: env} }

func (s *zsetLock) Start(ctx context.Context) error {
	s.loops = scheme.NewLoops(ctx)
	s.loops.Every(s.env.Every, s.poll)
	return nil
}

// poll closes what is due, until a page is not full or all of it is another's.
func (s *zsetLock) poll(ctx context.Context) {
	for ctx.Err() == nil {
		ids, err := dueIn(ctx, s.env.Redis, zsetKey, batchSize)
		if err != nil {
			alarm(ctx, s.env, "poll", err)
			return
		}
		done := 0
		for _, id := range ids {
			if ctx.Err() != nil {
				return
			}
			ok, err := s.close(context.WithoutCancel(ctx), id)
			if err != nil {
				alarm(ctx, s.env, "close", err) // it stays, and is due again at the next poll
			}
			if ok {
				done++
			}
		}
		if len(ids) < batchSize || done == 0 {
			return
		}
	}
}

// close closes one order under its lock. False: another has it, or had it.
func (s *zsetLock) close(ctx context.Context, id string) (bool, error) {
	r, lock, token := s.env.Redis, lockPrefix+id, rand.Text()
	ours, err := r.SetNX(ctx, lock, token, s.env.Scaled(lockFor)).Result()
	if err != nil || !ours {
		return false, err
	}
	defer func() {
		if err := unlock.Run(ctx, r, []string{lock}, token).Err(); err != nil {
			alarm(ctx, s.env, "unlock", err) // it runs out by itself
		}
	}()
	task, err := r.HGetAll(ctx, taskPrefix+id).Result()
	if err != nil || len(task) == 0 { // none: it was closed since the page was read
		return false, err
	}
	if err := s.env.Handle(ctx, task["order"]); err != nil {
		return false, err
	}
	return true, s.Remove(ctx, id)
}

func (s *zsetLock) Add(ctx context.Context, o scheme.Order) error {
	_, err := s.env.Redis.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.HSet(ctx, taskPrefix+o.ID, "order", o.ID, "user", o.UserID, "expire_at", o.ExpireAt.UnixMilli())
		p.ZAdd(ctx, zsetKey, member(o.ID, o.ExpireAt))
		return nil
	})
	return err
}

func (s *zsetLock) Remove(ctx context.Context, id string) error {
	_, err := s.env.Redis.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.ZRem(ctx, zsetKey, id)
		p.Del(ctx, taskPrefix+id)
		return nil
	})
	return err
}

func (s *zsetLock) Stop() { s.loops.Stop() }

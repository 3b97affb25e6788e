package main

import (
	"context"
	_ "embed" // zsetack.lua, zsetackstuck.lua
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/orderwheel/orderwheel/bench/internal/scheme"
)

// zsetAck is zsetBatch with a status for each order: pending, processing, completed. What is taken
// goes to a second ZSet, and a scan puts back what has been in process for too
// long: so what a dead process had taken is closed after all.
//
// Where it is used: where the loss at a crash has been seen, and the articles add an ack.
//
// What it risks: what is slow and not dead is closed twice. What a crash interrupts is
// late by the time that counts as stuck, and the period of the scan.
type zsetAck struct {
	env   *scheme.Env
	loops *scheme.Loops
	pool  *scheme.Pool
}

const (
	processingKey = "order:processing" // ZSet: id, scored by when it was taken
	statusPrefix  = "order:status:"
	stuckAfter    = time.Minute
	stuckEvery    = 30 * time.Second
	completedFor  = 10 * time.Minute // how long it can be looked up
)

//go:embed zsetack.lua
var takeText string

//go:embed zsetackstuck.lua
var stuckText string

var take, putBack = redis.NewScript(takeText), redis.NewScript(stuckText)

func newZSetAck(env *scheme.Env) scheme.Scheme {
	return &zsetAck{env: env, pool: scheme.NewPool(env.Workers)}
}

func (s *zsetAck) Start(ctx context.Context) error {
	s.loops = scheme.NewLoops(ctx)
	s.loops.Every(s.env.Every, s.poll)
	s.loops.Every(s.env.Scaled(stuckEvery), s.stuck)
	return nil
}

func (s *zsetAck) poll(ctx context.Context) {
	for ctx.Err() == nil {
		ids, err := take.Run(ctx, s.env.Redis, []string{zsetKey, processingKey}, time.Now().UnixMilli(), batchSize, statusPrefix).StringSlice()
		if err != nil {
			alarm(ctx, s.env, "poll", err)
			return
		}
		for _, id := range ids {
			s.pool.Go(func() { s.close(context.WithoutCancel(ctx), id) })
		}
		if len(ids) < batchSize {
			return
		}
	}
}

func (s *zsetAck) close(ctx context.Context, id string) {
	if err := s.env.Handle(ctx, id); err != nil {
		alarm(ctx, s.env, "close", err) // it is put back when it counts as stuck
		return
	}
	_, err := s.env.Redis.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.ZRem(ctx, processingKey, id)
		p.HSet(ctx, statusPrefix+id, "status", "completed")
		p.Expire(ctx, statusPrefix+id, s.env.Scaled(completedFor))
		return nil
	})
	if err != nil {
		alarm(ctx, s.env, "ack", err)
	}
}

func (s *zsetAck) stuck(ctx context.Context) {
	now := time.Now()
	since := now.Add(-s.env.Scaled(stuckAfter)).UnixMilli()
	if err := putBack.Run(ctx, s.env.Redis, []string{processingKey, zsetKey}, since, now.UnixMilli(), statusPrefix).Err(); err != nil {
		alarm(ctx, s.env, "put back", err)
	}
}

func (s *zsetAck) Add(ctx context.Context, o scheme.Order) error {
	_, err := s.env.Redis.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.HSet(ctx, statusPrefix+o.ID, "status", "pending")
		p.ZAdd(ctx, zsetKey, member(o.ID, o.ExpireAt))
		return nil
	})
	return err
}

func (s *zsetAck) Remove(ctx context.Context, id string) error {
	_, err := s.env.Redis.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.ZRem(ctx, zsetKey, id)
		p.Del(ctx, statusPrefix+id)
		return nil
	})
	return err
}

func (s *zsetAck) Stop() {
	s.loops.Stop()
	s.pool.Wait()
}

package main

import (
	"context"
	_ "embed" // zsetbatch.lua
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/orderwheel/orderwheel/bench/internal/scheme"
)

// zsetBatch is zsetPoll by the hundred: a script removes up to 100 that are due and
// answers with them, and a pool closes them. So it takes on a load that closes one at a time
// cannot.
//
// Where it is used: where one at a time was too slow.
//
// What it risks: as zsetPoll, but a process that dies takes the whole of what it had
// removed with it.
type zsetBatch struct {
	zsetPoll
	pool *scheme.Pool
}

const batchSize = 100

//go:embed zsetbatch.lua
var popText string

var pop = redis.NewScript(popText)

func newZSetBatch(env *scheme.Env) scheme.Scheme {
	return &zsetBatch{zsetPoll{env: env}, scheme.NewPool(env.Workers)}
}

func (s *zsetBatch) Start(ctx context.Context) error {
	s.loops = scheme.NewLoops(ctx)
	s.loops.Every(s.env.Every, s.poll)
	return nil
}

// poll pops until a batch is not full.
func (s *zsetBatch) poll(ctx context.Context) {
	for ctx.Err() == nil {
		ids, err := pop.Run(ctx, s.env.Redis, []string{zsetKey}, time.Now().UnixMilli(), batchSize).StringSlice()
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

func (s *zsetBatch) close(ctx context.Context, id string) {
	if err := s.env.Handle(ctx, id); err != nil {
		if err := addAgain(ctx, s.env, id, err); err != nil {
			alarm(ctx, s.env, "add again", err)
		}
	}
}

func (s *zsetBatch) Stop() {
	s.loops.Stop()
	s.pool.Wait()
}

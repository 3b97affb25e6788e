package main

import (
	"context"
	_ "embed" // zsetlevels.lua
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/orderwheel/orderwheel/bench/internal/scheme"
)

// zsetLevels has three ZSets: for what is due within a minute, within an hour, and later.
// What comes near moves down; only the nearest is polled often.
//
// Where it is used: where delays go from seconds to days, and somebody fears for one ZSet with all
// of them.
//
// What it risks: what zsetPoll does, and one move more for each level. What is in the wrong
// level is late by the period of that level.
type zsetLevels struct {
	zsetPoll
}

// level is one of the ZSets above the nearest. Its poller moves down what is due within.
type level struct {
	from, to string
	within   time.Duration
	every    time.Duration
}

const (
	hourKey  = "order:delay:hour"
	laterKey = "order:delay:later"
	moveSize = 500
)

// levels are the articles', the lowest first.
var levels = []level{
	{hourKey, zsetKey, time.Minute, 10 * time.Second},
	{laterKey, hourKey, time.Hour, time.Minute},
}

//go:embed zsetlevels.lua
var moveText string

var move = redis.NewScript(moveText)

func newZSetLevels(env *scheme.Env) scheme.Scheme { return &zsetLevels{zsetPoll{env: env}} }

func (s *zsetLevels) Start(ctx context.Context) error {
	s.loops = scheme.NewLoops(ctx)
	s.loops.Every(s.env.Every, s.poll)
	for _, l := range levels {
		s.loops.Every(s.env.Scaled(l.every), func(ctx context.Context) { s.moveDown(ctx, l) })
	}
	return nil
}

// moveDown moves what has come near, and what would before the next time.
func (s *zsetLevels) moveDown(ctx context.Context, l level) {
	for ctx.Err() == nil {
		until := time.Now().Add(s.env.Scaled(l.within)).UnixMilli()
		n, err := move.Run(ctx, s.env.Redis, []string{l.from, l.to}, until, moveSize).Int()
		if err != nil {
			alarm(ctx, s.env, "move", err)
			return
		}
		if n < moveSize {
			return
		}
	}
}

func (s *zsetLevels) Add(ctx context.Context, o scheme.Order) error {
	key, in := zsetKey, time.Until(o.ExpireAt)
	for _, l := range levels {
		if in > s.env.Scaled(l.within) {
			key = l.from
		}
	}
	return s.env.Redis.ZAdd(ctx, key, member(o.ID, o.ExpireAt)).Err()
}

// Remove looks in all three: who knows where it is by now?
func (s *zsetLevels) Remove(ctx context.Context, id string) error {
	_, err := s.env.Redis.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for _, key := range []string{zsetKey, hourKey, laterKey} {
			p.ZRem(ctx, key, id)
		}
		return nil
	})
	return err
}

package main

import (
	"context"
	"time"

	"github.com/orderwheel/orderwheel/bench/internal/scheme"
)

// combined is what the articles end up with: something quick, and behind it a scan of the
// database every few minutes for what it has lost. The trigger here is zsetBatch.
//
// Where it is used: in most shops that have been in production for a year.
//
// What it risks: two ways to close an order, which may meet: the close must decide by a
// conditional update. What the trigger loses is late by the period of the scan; and a trigger
// that has quietly stopped looks like one that works.
type combined struct {
	trigger *zsetBatch
	safety  *dbScan
}

const safetyEvery = 5 * time.Minute

func newCombined(env *scheme.Env) scheme.Scheme {
	safety := *env
	safety.Every = env.Scaled(safetyEvery)
	return &combined{newZSetBatch(env).(*zsetBatch), newDBScan(&safety).(*dbScan)}
}

func (s *combined) Start(ctx context.Context) error {
	if err := s.trigger.Start(ctx); err != nil {
		return err
	}
	return s.safety.Start(ctx)
}

func (s *combined) Add(ctx context.Context, o scheme.Order) error { return s.trigger.Add(ctx, o) }

func (s *combined) Remove(ctx context.Context, id string) error { return s.trigger.Remove(ctx, id) }

func (s *combined) Stop() {
	s.safety.Stop()
	s.trigger.Stop()
}

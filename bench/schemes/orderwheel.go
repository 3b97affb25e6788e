package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/bench/internal/scheme"
)

// orderWheel is this module's engine: a timing wheel in memory says when, Redis holds every
// order until it is closed, and a claim decides who closes it. A restart reads Redis; a sweep and
// leases take over what a dead process had.
//
// Where it is used: in an order app with a Redis that keeps what it is told.
//
// What it risks: it needs Redis for each order at its instant, and several commands for it.
// What a dead process was closing waits for the end of its lease.
type orderWheel struct {
	env    *scheme.Env
	engine *orderwheel.Engine
}

const (
	lease     = 30 * time.Second // the engine's default
	stopAfter = 10 * time.Second
)

func newOrderWheel(env *scheme.Env) scheme.Scheme { return &orderWheel{env: env} }

func (s *orderWheel) Start(ctx context.Context) (err error) {
	s.engine, err = orderwheel.New(orderwheel.Config{
		Redis:   s.env.Redis,
		Handler: orderwheel.Closing(closer{s.env}),
		Workers: s.env.Workers,
		Lease:   s.env.Scaled(lease),
	})
	if err != nil {
		return err
	}
	return s.engine.Start(ctx)
}

// closer is the handler of env as what orderwheel.Closing takes.
type closer struct{ env *scheme.Env }

func (c closer) Close(ctx context.Context, id string, _ time.Time) (done, error) {
	return done{}, c.env.Handle(ctx, id)
}

// done says that an order needs no further close.
type done struct{}

func (done) Done() bool                { return true }
func (done) NotYet() (time.Time, bool) { return time.Time{}, false }

func (s *orderWheel) Add(ctx context.Context, o scheme.Order) error {
	return s.engine.Schedule(ctx, o.ID, o.ExpireAt)
}

func (s *orderWheel) Remove(ctx context.Context, id string) error {
	_, err := s.engine.Cancel(ctx, id)
	return err
}

func (s *orderWheel) Stop() {
	ctx, cancel := context.WithTimeout(context.Background(), stopAfter)
	defer cancel()
	if err := s.engine.Stop(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "orderwheel:", err)
	}
}

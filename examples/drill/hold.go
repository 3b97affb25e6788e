package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/examples/internal/audit"
	"github.com/orderwheel/orderwheel/executor"
	"github.com/orderwheel/orderwheel/wheel"
)

const (
	holdAtLeast = 32
	holdLease   = 10 * time.Second // the kill comes before it is over
)

// hold creates all orders at once and lets no call of the handler return. Half
// of them have closed their order by then, half have not. It tells the drill when
// all stands like that, and waits to be killed.
func (w *worker) hold(ctx context.Context, log *slog.Logger) (err error) {
	p, err := openPlace(ctx, w.job, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	notes, err := audit.OpenNotes(w.job.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, notes.Close()) }()
	closing := orderwheel.Closing(p.store)
	c := orderwheel.Config{Redis: p.redis, Namespace: namespace, Handler: notes.Wrap(closing), Logger: log}

	// Until all orders are there nothing may fire, or leases would run out
	// meanwhile: the clock of the first engine's wheel stands still.
	c.Wheel = func(func() int64) wheel.Wheel { return wheel.New(func() int64 { return 0 }) }
	c.SweepEvery = time.Hour
	err = w.withEngine(ctx, c, func(engine *orderwheel.Engine) error {
		s := &shop{place: p, engine: engine, notes: notes, steps: w.steps}
		return s.createAll(ctx, w.job)
	})
	if err != nil {
		return err
	}
	held := &holder{next: closing}
	c.Wheel, c.SweepEvery, c.Lease, c.Handler = nil, 0, holdLease, notes.Wrap(held.handle)
	return w.withEngine(ctx, c, func(*orderwheel.Engine) error {
		for held.holding.Load() < holdAtLeast {
			if !sleepUntil(ctx, time.Now().Add(time.Millisecond)) {
				return ctx.Err()
			}
		}
		fmt.Fprintln(w.out, tellHolding, held.holding.Load())
		<-ctx.Done()
		return nil
	})
}

// createAll creates all orders of a job at once.
func (s *shop) createAll(ctx context.Context, j job) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	t := startTimeline(ctx, customersAtOnce, fail)
	var creating sync.WaitGroup
	for i := range j.Orders {
		creating.Add(1)
		t.add(ctx, act{do: func(ctx context.Context) error {
			defer creating.Done()
			return s.create(ctx, j.customer(i, 0))
		}})
	}
	waitFor(ctx, &creating)
	err := context.Cause(ctx)
	fail(nil)
	t.wait()
	return err
}

// holder is a handler whose calls never return, but with an error.
type holder struct {
	next             executor.Handler
	entered, holding atomic.Int64
}

func (h *holder) handle(ctx context.Context, t executor.Task) error {
	if h.entered.Add(1)%2 == 0 {
		if err := h.next(ctx, t); err != nil {
			return err
		}
	}
	h.holding.Add(1)
	select {} // until the process is killed
}

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/examples/internal/audit"
	"github.com/orderwheel/orderwheel/executor"
)

const (
	stopWithin = 30 * time.Second // longer than Redis is ever down
	lease      = 2 * time.Second  // short, so that what a killed worker ran soon runs again

	// reconcileEvery is short, so that what Redis lost is back before the drill ends.
	reconcileEvery = 5 * time.Second
)

// A task fails here when its order has not been created yet, or the database is
// locked by a worker that stands still.
var retry = orderwheel.Retry{Base: 100 * time.Millisecond, Cap: 5 * time.Second}

// worker is what a process does besides the drill's own: it creates, pays and
// extends the orders of its slot, and its engine closes orders of all.
type worker struct {
	job   job
	steps *steps
	out   io.Writer
	phase atomic.Int32
}

// work does the job of this process, until it is told to stop or killed, and
// gives the exit status.
func work(ctx context.Context, j job, in io.Reader, out, errs io.Writer) int {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	w := &worker{job: j, steps: &steps{out: out}, out: out}
	if j.Step != "" {
		w.steps.arm(j.Step)
	}
	go w.listen(in, stop)
	do := w.run
	if j.Hold {
		do = w.hold
	}
	if err := do(ctx, slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{Level: slog.LevelWarn}))); err != nil {
		fmt.Fprintln(errs, err)
		return exitFailed
	}
	return 0
}

// listen does what the drill tells. When the drill is gone, so is the worker.
func (w *worker) listen(in io.Reader, stop func()) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		switch verb, s, _ := strings.Cut(lines.Text(), " "); verb {
		case tellWait:
			w.steps.arm(step(s))
		case tellStop:
			stop()
		}
	}
	os.Exit(exitFailed)
}

func (w *worker) run(ctx context.Context, log *slog.Logger) (err error) {
	p, err := openPlace(ctx, w.job, w.steps)
	if err != nil {
		return err
	}
	p.redis.AddHook(redisSteps{w.steps, &w.phase})
	defer func() { err = errors.Join(err, p.close()) }()
	notes, err := audit.OpenNotes(w.job.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, notes.Close()) }()
	c := orderwheel.Config{
		Redis: p.redis, Namespace: namespace, Lease: lease, Retry: retry,
		Source: p.store, ReconcileEvery: reconcileEvery,
		Handler: w.stepping(notes.Wrap(orderwheel.Closing(p.store))),
		Logger:  slog.New(startedLog{log.Handler(), func() { w.phase.Store(int32(rebuilding)) }}),
	}
	return w.withEngine(ctx, c, func(engine *orderwheel.Engine) error {
		took := time.Since(w.job.Spawned)
		w.phase.Store(int32(running))
		fmt.Fprintln(w.out, tellStarted, took.Microseconds())
		return w.serve(ctx, &shop{place: p, engine: engine, notes: notes, steps: w.steps})
	})
}

// serve does what the customers want until the worker is to stop.
func (w *worker) serve(ctx context.Context, s *shop) error {
	if !w.job.Idle {
		return s.play(ctx, w.job)
	}
	<-ctx.Done()
	return nil
}

// withEngine runs f while an engine runs.
func (w *worker) withEngine(ctx context.Context, c orderwheel.Config, f func(*orderwheel.Engine) error) error {
	engine, err := orderwheel.New(c)
	if err != nil {
		return err
	}
	if err := engine.Start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // told to stop
		}
		return err
	}
	err = f(engine)
	w.phase.Store(int32(stopping))
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	err = errors.Join(err, engine.Stop(stopCtx))
	if err == nil {
		w.steps.pass(inStop) // one that had nothing to ask of Redis
	}
	return err
}

// stepping passes the steps around the handler.
func (w *worker) stepping(next executor.Handler) executor.Handler {
	return func(ctx context.Context, t executor.Task) error {
		w.steps.pass(claimHandler)
		err := next(ctx, t)
		if err == nil {
			w.steps.pass(closeAck)
		}
		return err
	}
}

// startedLog calls started when the engine says that it has started, after which
// it reads what Redis has.
type startedLog struct {
	slog.Handler
	started func()
}

func (l startedLog) Enabled(context.Context, slog.Level) bool { return true }

func (l startedLog) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "started" {
		l.started()
	}
	if !l.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return l.Handler.Handle(ctx, r)
}

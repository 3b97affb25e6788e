package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/executor"
	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/wheel"
)

// A job is what a worker is to do. The drill hands it over in the environment
// of the process.
type job struct {
	Dir    string // of the database and the audit's notes
	Redis  string // host:port
	Orders int
	Start  time.Time // of the first worker

	// Hold has the worker create all orders and let no call of its handler
	// return. Half of them have closed their order by then, half have not. It
	// says on a line of stdout when all stands like that.
	Hold bool
}

const jobVariable = "ORDERWHEEL_DRILL_JOB"

// workerCommand is a process of program, which is this one, that does a job. It
// is killed when ctx ends.
func workerCommand(ctx context.Context, program string, j job) (cmd *exec.Cmd, stderr *strings.Builder, err error) {
	text, err := json.Marshal(j)
	if err != nil {
		return nil, nil, err
	}
	stderr = new(strings.Builder)
	cmd = exec.CommandContext(ctx, program)
	cmd.Env = append(os.Environ(), jobVariable+"="+string(text))
	cmd.Stderr = stderr
	return cmd, stderr, nil
}

// jobOfThisProcess is the job if this process is a worker.
func jobOfThisProcess() (j job, ok bool) {
	text := os.Getenv(jobVariable)
	return j, text != "" && json.Unmarshal([]byte(text), &j) == nil
}

const (
	customers   = 16
	watchEvery  = 20 * time.Millisecond
	stopWithin  = 10 * time.Second
	lease       = 2 * time.Second // short, so that what a killed worker ran soon runs again
	holdAtLeast = 32
	holdLease   = 10 * time.Second // the kill comes before it is over
)

// work does a job: it creates what orders are missing and returns when none is
// open. It gives the exit status of the process.
func work(ctx context.Context, j job) int {
	if err := doWork(ctx, j); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitFailed
	}
	return 0
}

func doWork(ctx context.Context, j job) (err error) {
	p, err := open(ctx, j)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	closing := orderwheel.Closing(p.store)
	if !j.Hold {
		return p.withEngine(ctx, orderwheel.Config{Handler: closing, Lease: lease}, func(engine *orderwheel.Engine) error {
			if err := p.createAll(ctx, engine, j); err != nil {
				return err
			}
			return p.waitClosed(ctx)
		})
	}
	// Until all orders are there nothing may fire, or leases would run out
	// meanwhile: the clock of the first engine's wheel stands still.
	stuck := func(func() int64) wheel.Wheel { return wheel.New(func() int64 { return 0 }) }
	err = p.withEngine(ctx, orderwheel.Config{Handler: closing, Wheel: stuck, SweepEvery: time.Hour}, func(engine *orderwheel.Engine) error {
		return p.createAll(ctx, engine, j)
	})
	if err != nil {
		return err
	}
	held := &holder{next: closing}
	return p.withEngine(ctx, orderwheel.Config{Handler: held.handle, Lease: holdLease}, func(*orderwheel.Engine) error {
		return held.waitKilled(ctx)
	})
}

// withEngine runs f while an engine runs.
func (p *place) withEngine(ctx context.Context, c orderwheel.Config, f func(*orderwheel.Engine) error) error {
	c.Redis, c.Namespace, c.Handler = p.redis, namespace, p.audit.Wrap(c.Handler)
	engine, err := orderwheel.New(c)
	if err != nil {
		return err
	}
	if err := engine.Start(ctx); err != nil {
		return err
	}
	err = f(engine)
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	return errors.Join(err, engine.Stop(stopping))
}

// waitClosed waits until no order is open.
func (p *place) waitClosed(ctx context.Context) error {
	return poll(ctx, func() (done bool, err error) {
		open, err := p.countOpen(ctx)
		return open == 0, err
	})
}

// waitKilled says when enough calls of the handler are held, and then waits.
func (h *holder) waitKilled(ctx context.Context) error {
	err := poll(ctx, func() (bool, error) { return h.holding.Load() >= holdAtLeast, nil })
	if err == nil {
		fmt.Println("holding", h.holding.Load())
		<-ctx.Done()
	}
	return err
}

func poll(ctx context.Context, done func() (bool, error)) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
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

// createAll creates the missing orders, by several customers at once.
func (p *place) createAll(ctx context.Context, engine *orderwheel.Engine, j job) error {
	missing, err := p.missing(ctx, j)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var taken atomic.Int64
	var wg sync.WaitGroup
	for range customers {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(taken.Add(1)) - 1
				if i >= len(missing) {
					return
				}
				if err := p.create(ctx, engine, missing[i], i%4 == 0 && !j.Hold); err != nil {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// create schedules an order, creates it, and pays it or not. A kill between the
// first two leaves a task without an order, and the next worker creates that
// order; a kill after the payment leaves a task that finds a paid order.
func (p *place) create(ctx context.Context, engine *orderwheel.Engine, o order.Order, pays bool) error {
	now, err := engine.Now(ctx)
	if err != nil {
		return err
	}
	if err := engine.Schedule(ctx, o.No, o.ExpireAt); err != nil {
		return err
	}
	if err := p.store.Create(ctx, o, now); err != nil || !pays {
		return err
	}
	outcome, err := p.store.Pay(ctx, order.Payment{ID: "payment of " + o.No, OrderNo: o.No, Amount: o.Amount, At: now})
	if err != nil || outcome != order.PaidNow {
		return err
	}
	_, err = engine.Cancel(ctx, o.No)
	return err
}

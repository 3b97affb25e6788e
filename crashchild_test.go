package orderwheel_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/executor"
	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/sqlstore"
	"github.com/orderwheel/orderwheel/order/sqlstore/sqlite"
)

// crashChildJob is set where the test binary runs itself, to be killed.
const crashChildJob = "ORDERWHEEL_TEST_CRASH"

// crashJob is what a child does: it starts an engine, places orders, and is killed at a step.
// Or it stops when its standard input ends.
type crashJob struct {
	Redis, DB string

	Step  crashStep // empty: it is not killed
	Skip  int64     // so many pass the step before
	Fired bool      // the step is not over before a handler has been called

	Place   []order.Order
	Lease   time.Duration
	Sweep   time.Duration // SweepEvery
	Source  bool          // reconcile with the database
	Page    int           // the most tasks that are read at a time; 0: no such limit
	Workers int           // 0: the default
	Mute    bool          // no claim is answered: nothing fires

	Stay bool          // the first call of the handler never returns
	Stop time.Duration // after that call the engine is told to stop, with so much time; 0: it is not
}

// crashChild is the other process. It tells on its standard output, a line each:
//
//	ran ID ATTEMPT SOURCE MS   the handler was called, at Unix millisecond MS by the process's clock
//	at STEP                    it waits for the kill
func crashChild(text string) int {
	var j crashJob
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		panic(err)
	}
	if err := j.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (j crashJob) run(ctx context.Context) error {
	called := make(chan struct{})
	steps := &crashSteps{at: j.Step, out: os.Stdout}
	if j.Fired {
		steps.hold = called
	}
	steps.left.Store(j.Skip)
	connector, err := sqlite.Connector(j.DB, sqlite.Options{Sync: sqlite.SyncNormal})
	if err != nil {
		return err
	}
	orders := sqlstore.New(sql.OpenDB(crashConnector{connector, steps}), sqlite.Dialect{})
	rdb := redis.NewClient(&redis.Options{Addr: j.Redis, ContextTimeoutEnabled: true})
	eng, err := j.engine(rdb, orders, called)
	if err != nil {
		return err
	}
	page := j.Page
	if page == 0 {
		page = 1000
	}
	orderwheel.WrapStore(eng, func(s orderwheel.Store) orderwheel.Store { return crashStore{s, steps, page, j.Mute} })
	if err := eng.Start(ctx); err != nil {
		return err
	}
	for _, o := range j.Place {
		if err := orders.Create(ctx, o, time.Now()); err != nil {
			return err
		}
		steps.pass(committed)
		if err := eng.Schedule(ctx, o.No, o.ExpireAt); err != nil {
			return err
		}
	}
	if j.Stop > 0 {
		<-called
		go passWhenStopping(eng, steps)
		stopCtx, cancel := context.WithTimeout(ctx, j.Stop)
		defer cancel()
		return eng.Stop(stopCtx)
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until the parent says so, or dies
	stopCtx, cancel := context.WithTimeout(ctx, hang)
	defer cancel()
	return errors.Join(eng.Stop(stopCtx), orders.DB().Close(), rdb.Close())
}

// engine makes the engine. The first call of its handler closes called.
func (j crashJob) engine(rdb *redis.Client, orders *sqlstore.Store, called chan<- struct{}) (*orderwheel.Engine, error) {
	handler := orderwheel.Closing(orders)
	var calls atomic.Int64
	cfg := orderwheel.Config{
		Redis: rdb, Lease: j.Lease, SweepEvery: j.Sweep, Workers: j.Workers, RequireClaim: true,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Handler: func(ctx context.Context, t executor.Task) error {
			fmt.Println("ran", t.ID, t.Attempt, t.Source, time.Now().UnixMilli())
			if calls.Add(1) == 1 {
				close(called)
				if j.Stay {
					select {}
				}
			}
			return handler(ctx, t)
		},
	}
	if j.Source {
		cfg.Source = orders
	}
	return orderwheel.New(cfg)
}

// passWhenStopping passes the step at which Stop waits for the handler that stays: the calls of an
// engine are refused from then on.
func passWhenStopping(eng *orderwheel.Engine, steps *crashSteps) {
	for {
		if _, err := eng.Cancel(context.Background(), "none"); errors.Is(err, orderwheel.ErrClosed) {
			steps.pass(stopping)
			return
		}
		time.Sleep(time.Millisecond)
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/orderwheel/orderwheel/examples/internal/audit"
	"github.com/orderwheel/orderwheel/examples/internal/show"
)

const (
	perOrder     = 2 * time.Millisecond // orders are created no faster than one in this time,
	perKill      = time.Second          // and no faster than their part in one kill's time
	watchEvery   = 250 * time.Millisecond
	tellEvery    = 5 * time.Second
	finishWithin = 2 * time.Minute // nothing happens any more: a hang
)

// round is one run: an empty database and an empty Redis, workers, and harm.
type round struct {
	program string
	job     job
	redis   *server
	place   *place
	audit   *audit.Audit
	log     io.Writer
	keep    bool // the files

	mu struct {
		sync.Mutex
		kills  map[step]int64
		starts []time.Duration // how long each took
	}
}

// newRound prepares one. Close it in any case.
func newRound(ctx context.Context, o options, seed uint64, log io.Writer) (r *round, err error) {
	r = &round{log: log}
	r.mu.kills = map[step]int64{}
	r.job = job{Orders: o.orders, Seed: seed, Processes: o.processes}
	r.job.Spread = max(perOrder*time.Duration(o.orders), perKill*time.Duration(o.kills+2*o.redisKills))
	if r.program, err = os.Executable(); err != nil {
		return r, err
	}
	if r.job.Dir, err = os.MkdirTemp("", "orderwheel-drill-"); err != nil {
		return r, err
	}
	if r.redis, err = startRedis(ctx, r.job.Dir); err != nil {
		return r, err
	}
	r.job.Redis = r.redis.addr
	if r.place, err = openPlace(ctx, r.job, nil); err != nil {
		return r, err
	}
	db := r.place.store.DB()
	if err := r.place.store.Migrate(ctx); err != nil {
		return r, err
	}
	if _, err := db.ExecContext(ctx, slipsTable); err != nil {
		return r, err
	}
	r.audit, err = audit.Open(ctx, audit.Config{DB: db, Redis: r.place.redis, Namespace: namespace, Dir: r.job.Dir})
	if err != nil {
		return r, err
	}
	if err := r.place.prepare(ctx, r.job); err != nil {
		return r, err
	}
	return r, r.audit.NoteStock(ctx)
}

// close ends what the round has started and removes its files, unless they are to
// be kept. All workers have ended.
func (r *round) close() error {
	var errs []error
	if r.audit != nil {
		errs = append(errs, r.audit.Close())
	}
	if r.place != nil {
		errs = append(errs, r.place.close())
	}
	if r.redis != nil {
		r.redis.stop()
	}
	if r.job.Dir != "" && !r.keep {
		errs = append(errs, os.RemoveAll(r.job.Dir))
	}
	return errors.Join(errs...)
}

// run lets the workers work and does them harm by plan. It returns when every
// order has been created, none is open and no task is left, or when that does
// not come about; the audit says then why.
func (r *round) run(ctx context.Context, plan []event) error {
	r.job.Start = time.Now()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var parts sync.WaitGroup
	part := func(run func() error) {
		parts.Go(func() {
			if err := run(); err != nil {
				fail(err)
			}
		})
	}
	harmed := make(chan struct{})
	working, finish := context.WithCancel(ctx)
	for n := range r.job.Processes {
		part(func() error { return (&slot{round: r, number: n}).run(ctx, working, of(plan, n)) })
	}
	part(func() error {
		defer close(harmed)
		if r.redis.mini != nil {
			return nil
		}
		return r.harm(ctx, ofRedis(plan))
	})
	part(func() error {
		defer finish()
		return r.watch(ctx, harmed)
	})
	parts.Wait()
	return context.Cause(ctx)
}

// at is the instant of an event.
func (r *round) at(e event) time.Time {
	return r.job.Start.Add(time.Duration(e.At * float64(r.job.Spread)))
}

// watch waits until all is done, and tells how far it is. Redis must not be down
// any more.
func (r *round) watch(ctx context.Context, harmed <-chan struct{}) error {
	var last tally
	changed, told := time.Now(), time.Now()
	for sleepUntil(ctx, time.Now().Add(watchEvery)) {
		t, err := r.place.tally(ctx)
		if err != nil {
			return err
		}
		if time.Since(told) > tellEvery {
			told = time.Now()
			r.logf("%s of %s orders created, %s paid, %s closed, %s open", show.Comma(t.created), show.Comma(int64(r.job.Orders)),
				show.Comma(t.paid), show.Comma(t.closed), show.Comma(t.open))
		}
		if t != last {
			last, changed = t, time.Now()
		}
		if t.created == int64(r.job.Orders) && t.open == 0 && isClosed(harmed) {
			if tasks, err := r.audit.Tasks(ctx); err != nil || tasks == 0 {
				return err
			}
		}
		if time.Since(changed) > finishWithin {
			r.logf("nothing has happened for %v", finishWithin)
			return nil
		}
	}
	return ctx.Err()
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (r *round) logf(format string, args ...any) {
	at := time.Since(r.job.Start).Seconds()
	fmt.Fprintf(r.log, "%7.1fs  %s\n", at, fmt.Sprintf(format, args...))
}

// killed counts a kill that was to be as e, and was at a step.
func (r *round) killed(e event, at step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.kills[at]++
	if e.Do == killWorker && e.Step != at {
		r.logf("%v: not passed within %v, killed where it was", e, stepWithin)
		return
	}
	r.logf("%v", e)
}

func (r *round) tookToStart(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.starts = append(r.mu.starts, d)
}

// judge gives the figures of a round that is over. An error beside them is what
// they do not tell.
func (r *round) judge(ctx context.Context) (*figures, error) {
	report, err := r.audit.Report(ctx)
	if err != nil {
		return nil, err
	}
	tasks, err := r.audit.Tasks(ctx)
	if err != nil {
		return nil, err
	}
	var wrong []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}
	check(report.Orders == int64(r.job.Orders), "there are %d orders instead of %d", report.Orders, r.job.Orders)
	check(report.Open == 0, "orders are open: %d", report.Open)
	check(report.CouponsFrozen == 0, "coupons are frozen by orders that are not open: %d", report.CouponsFrozen)
	check(tasks == 0, "tasks are left in Redis: %d", tasks)
	r.mu.Lock()
	defer r.mu.Unlock()
	return newFigures(report, r.mu.kills, r.mu.starts), errors.Join(wrong...)
}

// runRound is a whole round.
func runRound(ctx context.Context, o options, rng *rand.Rand, log io.Writer) (f *figures, err error) {
	plan := newPlan(o, rng)
	r, err := newRound(ctx, o, rng.Uint64(), log)
	defer func() { err = errors.Join(err, r.close()) }()
	if err != nil {
		return nil, err
	}
	if r.redis.mini != nil {
		fmt.Fprintln(log, "redis-server is not installed: a Redis in this process serves, so Redis itself is not killed")
	}
	if err := r.run(ctx, plan); err != nil {
		return nil, err
	}
	f, err = r.judge(ctx)
	if err != nil || !f.sound() {
		r.keep = true
		fmt.Fprintf(log, "what there is to look at is kept: %s\n", r.job.Dir)
	}
	return f, err
}

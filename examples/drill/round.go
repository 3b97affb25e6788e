package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/orderwheel/orderwheel/examples/internal/audit"
)

const (
	longestLife  = 3 * time.Second // of a worker that is killed
	finishWithin = 5 * time.Minute // the last one; a hang
)

// round starts and kills workers, lets the last one finish, and gives the
// audit's report.
func round(ctx context.Context, o options, rng *rand.Rand, log io.Writer) (r audit.Report, err error) {
	program, err := os.Executable()
	if err != nil {
		return r, err
	}
	dir, err := os.MkdirTemp("", "orderwheel-drill-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	server, err := startRedis(ctx, dir)
	if err != nil {
		return r, err
	}
	defer server.stop()

	j := job{Dir: dir, Redis: server.addr, Orders: o.orders, Start: time.Now()}
	if err := prepare(ctx, j); err != nil {
		return r, err
	}
	for kill := 1; kill <= o.kills; kill++ {
		life := time.Duration(rng.Float64() * float64(longestLife))
		finished, err := runWorker(ctx, program, j, life)
		if err != nil {
			return r, err
		}
		if finished {
			fmt.Fprintf(log, "  the worker finished before kill %d\n", kill)
			break
		}
		fmt.Fprintf(log, "  kill %d after %v\n", kill, life.Round(time.Millisecond))
	}
	finished, err := runWorker(ctx, program, j, finishWithin)
	switch {
	case err != nil:
		return r, err
	case !finished:
		return r, fmt.Errorf("the last worker did not finish within %v", finishWithin)
	}
	return judge(ctx, j)
}

// runWorker runs a worker until it has finished, or kills it when its life is
// over.
func runWorker(ctx context.Context, program string, j job, life time.Duration) (finished bool, err error) {
	alive, cancel := context.WithTimeout(ctx, life)
	defer cancel()
	cmd, stderr, err := workerCommand(alive, program, j)
	if err != nil {
		return false, err
	}
	switch err := cmd.Run(); {
	case err == nil:
		return true, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	case alive.Err() != nil:
		return false, nil // killed: the context of a command ends it with SIGKILL
	default:
		return false, fmt.Errorf("a worker failed: %w\n%s", err, stderr)
	}
}

// judge gives the audit's report on a job that is done.
func judge(ctx context.Context, j job) (r audit.Report, err error) {
	p, err := open(ctx, j)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	r, err = p.audit.Report(ctx)
	if err != nil {
		return r, err
	}
	tasks, err := p.audit.Tasks(ctx)
	switch {
	case err != nil:
		return r, err
	case tasks > 0:
		return r, fmt.Errorf("no order is open, but tasks are left in Redis: %d", tasks)
	case r.Orders != int64(j.Orders):
		return r, fmt.Errorf("there are %d orders instead of %d", r.Orders, j.Orders)
	}
	return r, nil
}

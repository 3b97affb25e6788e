package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/orderwheel/orderwheel/bench/internal/lateness"
	"github.com/orderwheel/orderwheel/bench/internal/scheme"
)

// trial is one run of one row.
type trial struct {
	row          row
	orders, rate int
	scale        int
	workers      int
	instances    int
	kill         bool // kill -9 in mid-run, and restart
	asWritten    bool // the handler as the articles write it
	slowEvery    int  // each such handler takes slowFor longer
	slowFor      time.Duration
	mixedEvery   int // each such order expires mixedLater than its turn
	mixedLater   time.Duration
}

const (
	settles = 2 * time.Second // how long the last order is placed before the first expires
	// placesPerSecond is what every scheme reaches on a machine with other things to do.
	// Where one does not, the trial is tried again with twice the time.
	placesPerSecond = 4000
	placeTries      = 4
	restartAfter    = 500 * time.Millisecond
	pollEvery       = 200 * time.Millisecond
)

var errPlacedTooLate = errors.New("the orders were not placed before the first expired")

// run runs the trial on servers that nobody else uses.
func (t trial) run(ctx context.Context, s *servers) (f Figures, err error) {
	lead := settles + time.Duration(t.orders)*time.Second/placesPerSecond
	for range placeTries {
		if f, err = t.once(ctx, s, lead); !errors.Is(err, errPlacedTooLate) {
			break
		}
		lead *= 2
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", t.row.name, err)
	}
	return f, err
}

func (t trial) once(ctx context.Context, s *servers, lead time.Duration) (f Figures, err error) {
	if err := s.reset(ctx); err != nil {
		return f, err
	}
	dir, err := os.MkdirTemp(s.dir, "trial-")
	if err != nil {
		return f, err
	}
	defer os.RemoveAll(dir)
	w := &work{trial: t, servers: s, dir: dir, plan: scheme.Plan{
		Orders: t.orders, Rate: t.rate, MixedEvery: t.mixedEvery, MixedLater: t.mixedLater}}
	defer w.end()
	if err := w.prepare(ctx, lead); err != nil {
		return f, err
	}
	watch := lateness.StartWatch()
	err = w.work(ctx)
	watch.Stop()
	if err != nil {
		return f, err
	}
	if f, err = w.figures(ctx); err == nil {
		f.CanaryP99MS = watch.Canary.Quantile(0.99)
	}
	return f, err
}

// work is a trial under way.
type work struct {
	trial
	servers *servers
	dir     string
	plan    scheme.Plan
	before  counters
	procs   []*process
	files   []string // of calls

	killed  time.Time     // zero: not at all
	cpu     time.Duration // of processes that have ended
	memory  int64         // the most of one process
	selects int64         // of this program
	open    int           // orders that were never closed
	closed  time.Time     // when the last was seen to be
}

// prepare creates the orders, starts the processes and has them place the orders.
func (w *work) prepare(ctx context.Context, lead time.Duration) (err error) {
	w.plan.FirstMS = time.Now().Add(lead + createTakes(w.orders)).UnixMilli()
	if err := scheme.Create(ctx, w.servers.db, w.plan); err != nil {
		return err
	}
	if err := scheme.Pay(ctx, w.servers.db, w.plan); err != nil {
		return err
	}
	if w.before, err = w.servers.count(ctx); err != nil {
		return err
	}
	for i := range w.instances {
		if err := w.spawn(ctx, i); err != nil {
			return err
		}
	}
	for _, p := range w.procs {
		p.tell(scheme.TellPlace)
	}
	for _, p := range w.procs {
		if err := p.await(ctx, scheme.TellPlaced); err != nil {
			return err
		}
	}
	if !time.Now().Before(time.UnixMilli(w.plan.FirstMS)) {
		return errPlacedTooLate
	}
	return nil
}

// createTakes is about how long the creation of so many orders takes.
func createTakes(orders int) time.Duration {
	return time.Second + time.Duration(orders)*50*time.Microsecond
}

func (w *work) spawn(ctx context.Context, instance int) error {
	program := w.servers.peers
	if !w.row.peer {
		var err error
		if program, err = os.Executable(); err != nil {
			return err
		}
	}
	calls := filepath.Join(w.dir, fmt.Sprintf("calls-%d", len(w.files)))
	j := scheme.Job{
		Scheme: w.row.scheme, Run: filepath.Base(w.dir), Every: w.row.period(w.scale), Scale: w.scale,
		Instance: instance, Instances: w.instances, Workers: w.workers,
		DSN: w.servers.dsn, Calls: calls, Plan: w.plan, AsWritten: w.asWritten, SlowEvery: w.slowEvery, SlowFor: w.slowFor,
	}
	if w.servers.redis != nil {
		j.Redis = w.servers.redis.addr
	}
	if w.servers.rabbit != nil {
		j.AMQP = w.servers.rabbit.URL()
	}
	p, err := spawn(ctx, program, j)
	if err != nil {
		return err
	}
	w.procs = append(w.procs, p)
	w.files = append(w.files, calls)
	return nil
}

// work lets the orders expire, and returns when all are closed or no more will be.
func (w *work) work(ctx context.Context) error {
	first, last := time.UnixMilli(w.plan.FirstMS), w.plan.Last()
	if w.kill {
		if err := sleepUntil(ctx, first.Add(last.Sub(first)/2)); err != nil {
			return err
		}
		w.killAll()
		w.killed = time.Now()
		if err := sleepUntil(ctx, time.Now().Add(restartAfter)); err != nil {
			return err
		}
		if err := w.spawn(ctx, 0); err != nil {
			return err
		}
	}
	if err := sleepUntil(ctx, last); err != nil {
		return err
	}
	for w.open = -1; ; {
		open, err := scheme.Open(ctx, w.servers.db)
		if err != nil {
			return err
		}
		w.selects++
		if open != w.open {
			w.open, w.closed = open, time.Now()
		}
		if open == 0 || time.Since(w.closed) > w.row.patience(w.scale) {
			return nil
		}
		if err := sleepUntil(ctx, time.Now().Add(pollEvery)); err != nil {
			return err
		}
	}
}

func (w *work) killAll() {
	for _, p := range w.procs {
		w.look(p)
		p.kill()
	}
	w.procs = nil
}

// look notes what a process has used.
func (w *work) look(p *process) {
	w.cpu += cpuOf(p.cmd.Process.Pid)
	w.memory = max(w.memory, peakMemoryOf(p.cmd.Process.Pid))
}

// end kills what still runs.
func (w *work) end() {
	for _, p := range w.procs {
		p.kill()
	}
}

// figures ends the processes and gives what came of it.
func (w *work) figures(ctx context.Context) (f Figures, err error) {
	for _, p := range w.procs {
		w.look(p)
	}
	after, err := w.servers.count(ctx)
	if err != nil {
		return f, err
	}
	for len(w.procs) > 0 {
		p := w.procs[0]
		w.procs = w.procs[1:]
		if err := p.stop(ctx); err != nil {
			return f, err
		}
	}
	var calls []scheme.Call
	for _, name := range w.files {
		more, err := scheme.ReadCalls(name)
		if err != nil {
			return f, err
		}
		calls = append(calls, more...)
	}
	f = judge(w.plan, calls)
	f.NeverClosed = w.open
	if w.kill {
		f.AfterKill = expireAfter(w.plan, w.killed)
	}
	if f.DoubleEffects, err = scheme.DoubleEffects(ctx, w.servers.db); err != nil {
		return f, err
	}
	if closed := float64(w.plan.Unpaid() - w.open); closed > 0 {
		f.QueriesPerOrder = float64(after.queries-w.before.queries-w.selects) / closed
		f.CommandsPerOrder = float64(after.commands-w.before.commands) / closed
	}
	f.CPUSeconds = w.cpu.Seconds()
	f.ServersCPUSeconds = (after.cpu - w.before.cpu).Seconds()
	f.MemoryMB = float64(w.memory) / (1 << 20)
	return f, nil
}

func sleepUntil(ctx context.Context, t time.Time) error {
	select {
	case <-time.After(time.Until(t)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

package orderwheel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/orderwheel/orderwheel/executor"
	"github.com/orderwheel/orderwheel/internal/arming"
	"github.com/orderwheel/orderwheel/persist"
	"github.com/orderwheel/orderwheel/recovery"
	"github.com/orderwheel/orderwheel/wheel"
)

const (
	// The sweep pauses while more than this many ids per worker are ready, or than
	// readyAtLeast where there are few workers: it looks once a millisecond.
	readyPerWorker = 4
	readyAtLeast   = 128
	// startedInVain is how long a Start that fails waits for the handlers it
	// has begun.
	startedInVain = time.Second
	// storeCloses is how long Stop tries to remove what the store would forget by
	// itself.
	storeCloses = time.Second
	// shardPatience is far longer than a shard takes that is not away.
	shardPatience = 2 * time.Second
	// wheelStops is how long a wheel may take to stop.
	wheelStops = time.Second
)

// Errors that the engine's calls return; test with errors.Is.
var (
	// ErrClosed is returned by calls on an engine that is not running: before
	// Start, or after Stop.
	ErrClosed = errors.New("orderwheel: engine is not running")
	// ErrStarted is returned by Start on an engine that is running, or whose
	// last Stop has not ended well.
	ErrStarted = errors.New("orderwheel: engine is running or has not stopped")
	// ErrOverloaded is returned by Schedule and ScheduleMany for a new id while
	// Config.MaxPending are pending: it was not written, and nothing was lost. Do not
	// take the order, or call again later.
	ErrOverloaded = persist.ErrOverloaded
)

// Engine closes orders on time. Its methods are safe for concurrent use, also
// from within a handler.
type Engine struct {
	cfg   Config
	store store
	users keyLock
	calls arming.Calls

	// life is held, as a lock that ctx can cut, by Start and by Stop.
	life chan struct{}
	// old is what Stop has still to wait for. Guarded by life.
	old *run

	cur atomic.Pointer[run] // nil while not running

	mu struct {
		sync.Mutex
		starts context.Context // of every Start that has begun: Stop ends it and makes the next
		halt   context.CancelFunc
	}
}

// run is what one Start makes and one Stop ends.
type run struct {
	clock *recovery.Clock
	board *arming.Board
	exec  *executor.Executor
	rec   *recovery.Recovery

	warnings []string // of Check

	wheelStopped chan struct{} // closed when the wheel has stopped; nil: not asked yet
}

// New makes an engine from cfg and reports every fault of it at once. It starts
// nothing and asks nothing of Redis.
func New(cfg Config) (*Engine, error) {
	cfg = cfg.withDefaults()
	store, err := persist.New(cfg.Redis, persist.Options{
		Namespace: cfg.Namespace, WaitReplicas: cfg.WaitReplicas, WaitTimeout: cfg.WaitTimeout, WaitFsync: cfg.WaitFsync, MaxPending: cfg.MaxPending, Logger: cfg.Logger,
	})
	if err := errors.Join(cfg.validate(), err); err != nil {
		return nil, err
	}
	e := &Engine{cfg: cfg, store: store, life: make(chan struct{}, 1)}
	e.mu.starts, e.mu.halt = context.WithCancel(context.Background())
	return e, nil
}

// Start checks Redis, arms what is due within the Horizon, and begins to fire. It
// returns when all of that has been read, or with an error, and then nothing is left running but
// handlers that do not heed their ctx, for which Stop waits. ctx bounds Start,
// not the run. After Stop it may be called again. ErrStarted is returned when
// the engine is running already.
func (e *Engine) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e.mu.Lock()
	starts := e.mu.starts
	e.mu.Unlock()
	defer context.AfterFunc(starts, cancel)()

	if err := e.lockLife(ctx); err != nil {
		return fmt.Errorf("orderwheel: start: %w", err)
	}
	defer func() { <-e.life }()
	if e.old != nil {
		return ErrStarted
	}
	warnings, err := e.store.Check(ctx)
	if err != nil {
		return fmt.Errorf("orderwheel: start: %w", err)
	}
	for _, w := range warnings {
		e.cfg.Logger.Warn("redis_setup", slog.String("warning", w))
	}
	now, err := e.store.Now(ctx)
	if err != nil {
		return fmt.Errorf("orderwheel: start: reading the store's clock: %w", err)
	}
	r, err := e.newRun(now)
	if err != nil {
		return fmt.Errorf("orderwheel: start: %w", err)
	}
	r.warnings = warnings
	if err := r.exec.Start(); err != nil {
		return fmt.Errorf("orderwheel: start: %w", err)
	}
	r.board.Start()
	r.board.StartWheel(func(due []wheel.Due) { r.exec.Offer(due, executor.FromWheel) })
	e.old = r
	e.cur.Store(r)
	e.cfg.Logger.Info("started", slog.String("namespace", e.cfg.Namespace))
	r.rec.Start()
	if err := r.rec.Rebuild(ctx); err != nil {
		// Some handlers may have begun. ctx is most likely over, so they get a
		// moment of their own.
		stopCtx, cancelStop := context.WithTimeout(context.WithoutCancel(ctx), startedInVain)
		defer cancelStop()
		return fmt.Errorf("orderwheel: start: %w", errors.Join(err, e.stop(stopCtx)))
	}
	e.cfg.Logger.Info("recovered", slog.Uint64("tasks", r.rec.Stats().Rebuilt))
	return nil
}

func (e *Engine) newRun(now persist.Sample) (*run, error) {
	cfg, r := e.cfg, &run{clock: recovery.NewClock()}
	r.clock.Observe(now)
	newWheel := func() wheel.Wheel { return cfg.Wheel(r.clock.NowMS) }
	first := newWheel()
	if first == nil {
		return nil, errors.New("Config.Wheel returned nil: return a wheel, or leave it nil for wheel.New")
	}
	r.board = arming.New(first)
	r.exec = executor.New(executor.Config{
		Store:          e.store,
		Board:          r.board,
		Calls:          &e.calls,
		Patience:       e.patience(),
		ShardOf:        e.shardOf(),
		Handler:        cfg.Handler,
		BatchHandler:   cfg.BatchHandler,
		BatchSize:      cfg.BatchSize,
		Workers:        cfg.Workers,
		Lease:          cfg.Lease,
		HandlerTimeout: cfg.HandlerTimeout,
		Backoff:        cfg.Retry,
		OnDead:         cfg.OnDead,
		RequireClaim:   cfg.RequireClaim,
		NowMS:          r.clock.NowMS,
		LowerMS:        r.clock.LowerMS,
		Observe:        r.clock.Observe,
		Logger:         cfg.Logger,
	})
	offer := func(from executor.Source) func([]wheel.Due) []wheel.Due {
		return func(due []wheel.Due) []wheel.Due { return r.exec.Offer(due, from) }
	}
	r.rec = recovery.New(recovery.Config{
		Store:          e.store,
		Board:          r.board,
		Patience:       e.patience(),
		Clock:          r.clock,
		NewWheel:       newWheel,
		SweepEvery:     cfg.SweepEvery,
		Grace:          cfg.Grace,
		Horizon:        cfg.Horizon,
		Source:         cfg.Source,
		ReconcileEvery: cfg.ReconcileEvery,
		ReadyLimit:     max(readyPerWorker*cfg.Workers, readyAtLeast),
		Logger:         cfg.Logger,
		Ready:          r.exec.Ready,
		Found:          offer(executor.FromSweep),
		Overdue:        offer(executor.FromRecovery),
		Reaped:         r.exec.OfferReaped,
		Reconciled:     offer(executor.FromReconcile),
	})
	return r, nil
}

// patience is how long a call of the store waits for a shard that is away, before it
// does with what the others have answered.
func (e *Engine) patience() time.Duration {
	if e.store.Shards() == 1 {
		return 0
	}
	return shardPatience
}

// shardOf tells which shard has an id; nil: there is but one.
func (e *Engine) shardOf() func(id string) int {
	if e.store.Shards() == 1 {
		return nil
	}
	return e.store.ShardOf
}

// Stop ends the run: nothing new is claimed, running handlers are waited for,
// their answers are written, and no goroutine of the engine is left. What has
// not run stays in Redis. A Start in progress is ended. Stop is safe twice and
// before Start: what an operator's calls have left of sessions in Redis is removed.
//
// When ctx ends first, the ctx of the running handlers is cancelled, their
// leases are handed back, and Stop returns an error that wraps ctx's; calling
// it again waits for what is still at work. Within a handler, or OnDead, Stop would
// wait for that very call until ctx ends, so do not call it there without a
// goroutine of its own.
func (e *Engine) Stop(ctx context.Context) error {
	e.mu.Lock()
	e.mu.halt()
	e.mu.starts, e.mu.halt = context.WithCancel(context.Background())
	e.mu.Unlock()
	if err := e.lockLife(ctx); err != nil {
		return fmt.Errorf("orderwheel: stop: %w", err)
	}
	defer func() { <-e.life }()
	if err := e.stop(ctx); err != nil {
		return fmt.Errorf("orderwheel: stop: %w", err)
	}
	return nil
}

// stop ends e.old; the caller has e.life.
func (e *Engine) stop(ctx context.Context) error {
	if e.old != nil {
		e.cur.Store(nil)
		e.old.rec.Stop()
		if err := errors.Join(e.old.exec.Stop(ctx), e.old.stopWheel(ctx)); err != nil {
			return err
		}
		e.old = nil
	}
	closeCtx, cancel := context.WithTimeout(ctx, storeCloses)
	defer cancel()
	if err := e.store.Close(closeCtx); err != nil {
		// What it would have removed Redis forgets within a day.
		e.cfg.Logger.Warn("close_failed", slog.Any("error", err))
	}
	return nil
}

// stopWheel stops the board and the wheel. One that hangs is not waited for.
func (r *run) stopWheel(ctx context.Context) error {
	if r.wheelStopped == nil {
		r.wheelStopped = make(chan struct{})
		go func() {
			defer close(r.wheelStopped)
			r.board.Wheel().Stop()
		}()
	}
	// A wheel that is well stops in no time, also when the handlers have used ctx up.
	waitCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wheelStops)
	defer cancel()
	err := r.board.Stop(waitCtx)
	select {
	case <-r.wheelStopped:
	case <-waitCtx.Done():
		err = waitCtx.Err()
	}
	if err != nil {
		return fmt.Errorf("the wheel hangs: %w", err)
	}
	return nil
}

// lockLife takes e.life, if it is free also with a ctx that is over: a Stop that has no
// time left still hands back what it can.
func (e *Engine) lockLife(ctx context.Context) error {
	select {
	case e.life <- struct{}{}:
		return nil
	default:
	}
	select {
	case e.life <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Schedule makes id due at the instant at, rounded up to a millisecond. When it
// returns nil the task is durable in Redis. An id that is due already is moved;
// one that is running runs again at the new time. A time that has passed fires
// at once. While Redis is away the call is repeated until ctx ends.
//
// It returns ErrClosed while the engine is not running, persist.ErrInvalid for
// an id or a time that cannot be held, persist.ErrUnknownOutcome when it could not
// find out whether the write took place, ErrOverloaded for a new id over
// Config.MaxPending, and persist.ErrNotReplicated when it was written but too few
// replicas have it; to call it again is safe.
//
// Of two calls for one id the last one wins. So whoever calls it again after an error gives the
// time that the order has by then: the one of before would replace what another call, of an
// extension, has given meanwhile. (The close would find that order not yet due.)
func (e *Engine) Schedule(ctx context.Context, id string, at time.Time) error {
	if e.cur.Load() == nil {
		return fmt.Errorf("%w: schedule %q", ErrClosed, id)
	}
	dueMS, err := dueMS(at)
	if err != nil {
		return fmt.Errorf("orderwheel: schedule %q: %w", id, err)
	}
	unlock, err := e.users.lock(ctx, id)
	if err != nil {
		return fmt.Errorf("orderwheel: schedule %q: waiting for another call on it: %w", id, err)
	}
	defer unlock()
	e.calls.Begin(id)
	err = e.store.Schedule(ctx, []persist.Due{{ID: id, DueMS: dueMS}})
	if err == nil || errors.Is(err, persist.ErrNotReplicated) {
		e.userScheduled(id, dueMS)
	} else {
		e.userFailed(id, err)
	}
	if err != nil {
		return fmt.Errorf("orderwheel: schedule %q: %w", id, err)
	}
	return nil
}

// Cancel takes id back. True: it will not run, unless scheduled again. False:
// it has started, is done, or never was; if it is running it will not be
// retried. (Has it started without a claim, because Redis was away, then only
// the instance where it did so knows: another answers true. See
// Config.RequireClaim.) While Redis is away the call is repeated until ctx ends, and answers
// as its first copy that Redis executed.
//
// It returns ErrClosed while the engine is not running, and
// persist.ErrUnknownOutcome when it could not find out whether the write took
// place: another Cancel may then return false for what this one took back. Beside
// persist.ErrNotReplicated the answer stands, as long as no failover loses it.
func (e *Engine) Cancel(ctx context.Context, id string) (bool, error) {
	if e.cur.Load() == nil {
		return false, fmt.Errorf("%w: cancel %q", ErrClosed, id)
	}
	unlock, err := e.users.lock(ctx, id)
	if err != nil {
		return false, fmt.Errorf("orderwheel: cancel %q: waiting for another call on it: %w", id, err)
	}
	defer unlock()
	e.calls.Begin(id)
	outcomes, err := e.store.Cancel(ctx, []string{id})
	if err != nil && !errors.Is(err, persist.ErrNotReplicated) {
		e.userFailed(id, err)
		return false, fmt.Errorf("orderwheel: cancel %q: %w", id, err)
	}
	started := e.userCancelled(id)
	cancelled := outcomes[0] == persist.Cancelled && !started
	if err != nil {
		return cancelled, fmt.Errorf("orderwheel: cancel %q: %w", id, err)
	}
	return cancelled, nil
}

// Now is the store's clock, which decides what is due: compute expire_at from
// it. While the engine runs it is the local estimate, which asks nothing and
// may be behind by the length of a round trip; else Redis is asked.
func (e *Engine) Now(ctx context.Context) (time.Time, error) {
	if r := e.cur.Load(); r != nil {
		return time.UnixMilli(r.clock.NowMS()), nil
	}
	s, err := e.store.Now(ctx)
	if err != nil {
		return time.Time{}, fmt.Errorf("orderwheel: now: %w", err)
	}
	return time.UnixMicro(s.StoreUS), nil
}

// dueMS rounds up to a millisecond, so that nothing is early.
func dueMS(at time.Time) (int64, error) {
	if y := at.UTC().Year(); y >= 1970 && y <= 9999 {
		if ms := at.Add(time.Millisecond - time.Nanosecond).UnixMilli(); ms <= persist.MaxDueMS {
			return ms, nil
		}
	}
	return 0, fmt.Errorf("%w: at is %v: use an instant from 1970 to the end of 9999", persist.ErrInvalid, at)
}

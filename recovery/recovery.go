package recovery

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/orderwheel/orderwheel/internal/arming"
	"github.com/orderwheel/orderwheel/persist"
	"github.com/orderwheel/orderwheel/wheel"
)

const (
	pageSize   = persist.MaxBatch
	clockEvery = 2 * time.Second
)

// Store is what recovery needs of the persistence.
type Store interface {
	Window(ctx context.Context, after persist.Cursor, untilMS int64, limit int) (persist.Page, error)
	Reap(ctx context.Context, limit int) ([]persist.Due, error)
	Now(ctx context.Context) (persist.Sample, error)
	Epoch(ctx context.Context) (lost bool, err error)
	Ensure(ctx context.Context, dues []persist.Due) ([]bool, error)
	TakeTurn(ctx context.Context, owner string, lease time.Duration, force bool) (turn persist.Turn, left time.Duration, err error)
	EndTurn(ctx context.Context, owner string, rest time.Duration) (bool, error)
}

// Config is what a Recovery is made of. Every field is required, unless it says
// otherwise.
type Config struct {
	Store      Store
	Board      *arming.Board
	Clock      *Clock
	SweepEvery time.Duration
	Grace      time.Duration // how long overdue before the sweep takes it
	Horizon    time.Duration // what is due later is not armed
	ReadyLimit int           // no more is handed over while more than this is ready
	Patience   time.Duration // how long a sweep or a reap waits for a shard that is away; 0: there is but one
	Logger     *slog.Logger

	// NewWheel makes a wheel in the place of one that stands still.
	NewWheel func() wheel.Wheel

	// Source is the order database; nil: there is nothing to reconcile with. Every
	// ReconcileEvery it is read, by one of all instances.
	Source         Source
	ReconcileEvery time.Duration

	// Ready is how many ids wait for a worker here.
	Ready func() int
	// Found takes ids that the sweep found, Overdue those that were overdue at Start, Reaped
	// those whose lease is over, Reconciled those that only the Source knew. Each
	// returns the ids that were not held here.
	Found, Overdue, Reaped, Reconciled func([]wheel.Due) (taken []wheel.Due)
}

// Recovery rebuilds, pages, sweeps, reaps and reconciles, and watches the wheel. It is
// safe for concurrent use.
type Recovery struct {
	cfg    Config
	ctx    context.Context // ends with Stop
	cancel context.CancelFunc
	loops  sync.WaitGroup

	sweeps  sweeps
	pages   pages
	watch   watch
	losses  losses
	rounds  rounds
	pulses  []*pulse // of the loops; written by New alone
	sweeper *pulse
	clock   *pulse
	pager   *pulse
	watcher *pulse

	stats struct {
		rebuilt, found, reaped, replaced, lost atomic.Uint64
		reconciled, reconcileFound, refused    atomic.Uint64
	}
}

// Stats counts since Start.
type Stats struct {
	Rebuilt uint64 // tasks that Start read from the store and armed or handed over
	Found   uint64 // overdue tasks that the sweep handed over, by whatever fault
	Missed  uint64 // of these and those overdue at Start, those armed here: the wheel is late, or broken
	Reaped  uint64 // leases that had run out

	WheelReplaced uint64 // wheels that stood still
	EpochsLost    uint64 // times that the store had lost writes

	Reconciled       uint64 // unpaid orders that the Source told of
	ReconcileFound   uint64 // of these, those that stood nowhere in the store, and were put back
	ReconcileRefused uint64 // of these, those that no task can be: an id or a time beyond the limits
}

// New makes a recovery; it starts nothing.
func New(cfg Config) *Recovery {
	r := &Recovery{cfg: cfg}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.sweeps.kick = make(chan struct{}, 1)
	r.pages.kick = make(chan struct{}, 1)
	r.pages.turn = make(chan struct{}, 1)
	r.rounds.init()
	r.watch.judge = newJudge(cfg.SweepEvery, cfg.Clock.NowMS())
	r.sweeper = r.pulse("sweep_failed", "the sweep", cfg.SweepEvery)
	r.clock = r.pulse("clock_failed", "the reading of the store's clock", clockEvery)
	r.pager = r.pulse("paging_failed", "the reading of what is due next", r.pageEvery())
	r.watcher = r.pulse("watch_failed", "the watch over the wheel", lookEvery)
	return r
}

// Start begins to sweep, to reap, to read on, to reconcile, to read the clock and to
// watch the wheel. Call it once, and before Rebuild: it survives then a wheel that
// hangs, and works off what is overdue while the rest is being read.
func (r *Recovery) Start() {
	r.loop(r.sweeper, r.sweeps.kick, r.round)
	r.loop(r.clock, nil, r.readClock)
	r.loop(r.pager, r.pages.kick, r.turnPages)
	r.loop(r.watcher, nil, r.look)
	if r.cfg.Source != nil {
		r.loops.Go(r.reconcileLoop)
	}
}

// Stop ends all loops and waits for them. It is safe twice and before Start. A Source
// that does not heed its ctx is not waited for.
func (r *Recovery) Stop() {
	r.cancel()
	r.loops.Wait()
}

// Stats reads the counters.
func (r *Recovery) Stats() Stats {
	return Stats{
		Rebuilt: r.stats.rebuilt.Load(),
		Found:   r.stats.found.Load(),
		Missed:  r.cfg.Board.MissedCount(),
		Reaped:  r.stats.reaped.Load(),

		WheelReplaced: r.stats.replaced.Load(),
		EpochsLost:    r.stats.lost.Load(),

		Reconciled:       r.stats.reconciled.Load(),
		ReconcileFound:   r.stats.reconcileFound.Load(),
		ReconcileRefused: r.stats.refused.Load(),
	}
}

// readClock takes a reading of the store's clock.
func (r *Recovery) readClock(ctx context.Context) error {
	s, err := r.cfg.Store.Now(ctx)
	if err == nil {
		r.cfg.Clock.Observe(s)
	}
	return err
}

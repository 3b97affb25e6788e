package recovery

import (
	"context"
	"errors"
	"fmt"
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
	// moreAfter is the wait before the next page of a sweep or a reap, where a
	// page was full.
	moreAfter = 5 * time.Millisecond
)

// Store is what recovery needs of the persistence.
type Store interface {
	Window(ctx context.Context, after persist.Cursor, untilMS int64, limit int) (persist.Page, error)
	Reap(ctx context.Context, limit int) ([]persist.Due, error)
	Now(ctx context.Context) (persist.Sample, error)
}

// Config is what a Recovery is made of. Every field is required.
type Config struct {
	Store      Store
	Board      *arming.Board
	Clock      *Clock
	SweepEvery time.Duration
	Grace      time.Duration // how long overdue before the sweep takes it
	ReadyLimit int           // the sweep pauses while more than this is ready
	Patience   time.Duration // how long a sweep or a reap waits for a shard that is away; 0: there is but one
	Logger     *slog.Logger

	// Ready is how many ids wait for a worker here.
	Ready func() int
	// Found takes ids that the sweep found, Overdue those that a rebuild or a
	// reap did. Each returns the ids that were not held here.
	Found, Overdue func([]wheel.Due) (taken []wheel.Due)
}

// Recovery rebuilds, sweeps and reaps. It is safe for concurrent use.
type Recovery struct {
	cfg    Config
	ctx    context.Context // ends with Stop
	cancel context.CancelFunc
	loops  sync.WaitGroup

	moreDue bool // whether the last sweep's page was full; the sweep loop's own

	stats struct {
		rebuilt, found, reaped atomic.Uint64
	}
}

// Stats counts since Start.
type Stats struct {
	Rebuilt uint64 // tasks that the store held at Start
	Found   uint64 // overdue tasks that the sweep handed over, by whatever fault
	Missed  uint64 // of these, those armed here: the wheel is late, or broken
	Reaped  uint64 // leases that had run out
}

// New makes a recovery; it starts nothing.
func New(cfg Config) *Recovery {
	r := &Recovery{cfg: cfg}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Rebuild arms what the store holds, oldest first, and hands over what is
// overdue. It returns when all has been read, or with the error that ended the
// reading.
func (r *Recovery) Rebuild(ctx context.Context) error {
	var cursor persist.Cursor
	for more := true; more; {
		page, err := r.rebuildPage(ctx, cursor)
		if err != nil {
			return fmt.Errorf("recovery: rebuilding after %d tasks: %w", r.stats.rebuilt.Load(), err)
		}
		cursor, more = page.Next, page.More
	}
	return nil
}

func (r *Recovery) rebuildPage(ctx context.Context, after persist.Cursor) (persist.Page, error) {
	ticket := r.cfg.Board.Ask()
	defer r.cfg.Board.End(ticket)
	page, err := r.cfg.Store.Window(ctx, after, persist.MaxDueMS, pageSize)
	if err != nil {
		return page, err
	}
	r.cfg.Clock.Observe(page.Clock)
	r.place(ticket, page.Due)
	r.stats.rebuilt.Add(uint64(len(page.Due)))
	return page, r.cfg.Board.Drain(ctx) // no faster than the wheel can take it
}

// place hands over what is overdue and arms the rest.
func (r *Recovery) place(ticket arming.Ticket, due []persist.Due) {
	nowMS := r.cfg.Clock.NowMS()
	var overdue []wheel.Due
	for _, d := range due {
		if d.DueMS <= nowMS {
			overdue = append(overdue, wheel.Due(d))
		} else {
			r.cfg.Board.Arm(ticket, d.ID, d.DueMS)
		}
	}
	r.cfg.Overdue(overdue)
}

// Start begins to sweep, to reap and to read the clock. Call it once.
func (r *Recovery) Start() {
	r.loops.Go(func() { r.every(r.cfg.SweepEvery, "sweep_failed", r.round) })
	r.loops.Go(func() {
		r.every(clockEvery, "clock_failed", func(ctx context.Context) (more bool, err error) {
			s, err := r.cfg.Store.Now(ctx)
			if err == nil {
				r.cfg.Clock.Observe(s)
			}
			return false, err
		})
	})
}

// Stop ends both loops and waits for them. It is safe twice and before Start.
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
	}
}

// every calls do at that pace until Stop, and sooner while there is more to do.
// An error is logged when it is new, not again while it lasts.
func (r *Recovery) every(pace time.Duration, event string, do func(context.Context) (more bool, err error)) {
	timer := time.NewTimer(pace)
	defer timer.Stop()
	failing := false
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-timer.C:
		}
		more, err := do(r.ctx)
		if err != nil && !failing && r.ctx.Err() == nil {
			r.cfg.Logger.Error(event, slog.Any("error", err))
		}
		failing = err != nil
		if more && !failing {
			timer.Reset(min(pace, moreAfter))
		} else {
			timer.Reset(pace)
		}
	}
}

// round is one sweep and one reap; a fault of one does not keep the other from
// its turn. more: a page was full, so there is probably more to find.
func (r *Recovery) round(ctx context.Context) (more bool, err error) {
	moreDue, sweepErr := r.patiently(ctx, r.sweep)
	moreOver, reapErr := r.patiently(ctx, r.reap)
	return moreDue || moreOver, errors.Join(sweepErr, reapErr)
}

// patiently bounds what may be answered by some shards only.
func (r *Recovery) patiently(ctx context.Context, do func(context.Context) (bool, error)) (more bool, err error) {
	if r.cfg.Patience == 0 {
		return do(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Patience)
	defer cancel()
	return do(ctx)
}

// sweep hands over the oldest of what is overdue by more than Grace and not
// held here.
func (r *Recovery) sweep(ctx context.Context) (more bool, err error) {
	if r.cfg.Ready() > r.cfg.ReadyLimit {
		return r.moreDue, nil
	}
	ticket := r.cfg.Board.Ask()
	defer r.cfg.Board.End(ticket)
	untilMS := r.cfg.Clock.NowMS() - r.cfg.Grace.Milliseconds()
	page, err := r.cfg.Store.Window(ctx, persist.Cursor{}, untilMS, pageSize)
	if err != nil && len(page.Due) == 0 {
		return false, err
	}
	r.cfg.Clock.Observe(page.Clock)
	r.moreDue = page.More
	found := make([]wheel.Due, len(page.Due))
	for i, d := range page.Due {
		found[i] = wheel.Due(d)
	}
	taken := r.cfg.Found(found)
	for _, d := range taken {
		r.cfg.Board.Missed(ticket, d.ID)
	}
	r.stats.found.Add(uint64(len(taken)))
	if len(taken) > 0 {
		r.cfg.Logger.Info("sweep_found", slog.Int("tasks", len(taken)),
			slog.Uint64("missed_so_far", r.cfg.Board.MissedCount()), slog.Int("wheel_behind", r.cfg.Board.Waiting()))
	}
	return page.More, err
}

// reap makes due again what was claimed by one who has not settled it in time.
func (r *Recovery) reap(ctx context.Context) (more bool, err error) {
	ticket := r.cfg.Board.Ask()
	defer r.cfg.Board.End(ticket)
	reaped, err := r.cfg.Store.Reap(ctx, pageSize)
	r.place(ticket, reaped) // with an error too: some shards have answered
	r.stats.reaped.Add(uint64(len(reaped)))
	return len(reaped) >= pageSize, err
}

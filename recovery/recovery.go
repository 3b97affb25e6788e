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
	Logger     *slog.Logger

	// Ready is how many ids wait for a worker here.
	Ready func() int
	// Found takes ids that the sweep found, Overdue those that a rebuild or a reap
	// did. Each returns the ids that were not held here.
	Found, Overdue func([]wheel.Due) (taken []wheel.Due)
}

// Recovery rebuilds, sweeps and reaps. It is safe for concurrent use.
type Recovery struct {
	cfg    Config
	ctx    context.Context // ends with Stop
	cancel context.CancelFunc
	loops  sync.WaitGroup

	stats struct {
		rebuilt, missed, takenOver, reaped atomic.Uint64
	}
}

// Stats counts since Start.
type Stats struct {
	Rebuilt   uint64 // tasks that the store held at Start
	Missed    uint64 // found by the sweep though armed here: the wheel is late, or broken
	TakenOver uint64 // found by the sweep and not armed here: another instance's
	Reaped    uint64 // leases that had run out
}

// New makes a recovery; it starts nothing.
func New(cfg Config) *Recovery {
	r := &Recovery{cfg: cfg}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Rebuild arms what the store holds, oldest first, and hands over what is overdue.
// It returns when all has been read, or with the error that ended the reading.
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
	return page, nil
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
		r.every(clockEvery, "clock_failed", func(ctx context.Context) error {
			s, err := r.cfg.Store.Now(ctx)
			if err == nil {
				r.cfg.Clock.Observe(s)
			}
			return err
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
		Rebuilt:   r.stats.rebuilt.Load(),
		Missed:    r.stats.missed.Load(),
		TakenOver: r.stats.takenOver.Load(),
		Reaped:    r.stats.reaped.Load(),
	}
}

// every calls do at that pace until Stop. An error is logged when it is new, not
// again while it lasts.
func (r *Recovery) every(pace time.Duration, event string, do func(context.Context) error) {
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	failing := false
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-ticker.C:
		}
		err := do(r.ctx)
		if err != nil && !failing && r.ctx.Err() == nil {
			r.cfg.Logger.Error(event, slog.Any("error", err))
		}
		failing = err != nil
	}
}

// round is one sweep and one reap; a fault of one does not keep the other from its
// turn.
func (r *Recovery) round(ctx context.Context) error {
	return errors.Join(r.sweep(ctx), r.reap(ctx))
}

// sweep hands over the oldest of what is overdue by more than Grace and not held
// here.
func (r *Recovery) sweep(ctx context.Context) error {
	if r.cfg.Ready() > r.cfg.ReadyLimit {
		return nil
	}
	ticket := r.cfg.Board.Ask()
	defer r.cfg.Board.End(ticket)
	untilMS := r.cfg.Clock.NowMS() - r.cfg.Grace.Milliseconds()
	page, err := r.cfg.Store.Window(ctx, persist.Cursor{}, untilMS, pageSize)
	if err != nil {
		return err
	}
	r.cfg.Clock.Observe(page.Clock)
	found := make([]wheel.Due, len(page.Due))
	for i, d := range page.Due {
		found[i] = wheel.Due(d)
	}
	var missed, takenOver int
	for _, d := range r.cfg.Found(found) {
		if r.cfg.Board.Missed(ticket, d.ID) {
			missed++
		} else {
			takenOver++
		}
	}
	if missed > 0 {
		r.cfg.Logger.Warn("sweep_found", slog.Int("armed_here", missed), slog.Int("not_armed_here", takenOver))
	}
	r.stats.missed.Add(uint64(missed))
	r.stats.takenOver.Add(uint64(takenOver))
	return nil
}

// reap makes due again what was claimed by one who has not settled it in time.
func (r *Recovery) reap(ctx context.Context) error {
	ticket := r.cfg.Board.Ask()
	defer r.cfg.Board.End(ticket)
	reaped, err := r.cfg.Store.Reap(ctx, pageSize)
	if err != nil {
		return err
	}
	r.place(ticket, reaped)
	r.stats.reaped.Add(uint64(len(reaped)))
	return nil
}

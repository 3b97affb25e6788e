package recovery

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/orderwheel/orderwheel/internal/arming"
	"github.com/orderwheel/orderwheel/persist"
	"github.com/orderwheel/orderwheel/wheel"
)

// hungry is how often a pass that waits for workers looks whether they have taken
// up what was ready. In one millisecond no worker takes up 4 tasks, nor do so many
// workers as there may be take up 4 each.
const hungry = time.Millisecond

// sweeps is the state of the sweep loop.
type sweeps struct {
	kick chan struct{} // capacity 1: begin a round at once

	// startMS: what was due before that is overdue since before Start, and waits for no
	// Grace.
	startMS atomic.Int64
}

// round is what happens every SweepEvery. A fault of one part does not keep the others
// from their turn.
func (r *Recovery) round(ctx context.Context) error {
	return errors.Join(r.checkEpoch(ctx), r.reapAll(ctx), r.sweep(ctx))
}

// sweep hands over what is overdue by more than Grace and not held here, oldest first.
// While more is ready than workers can take up soon it waits, and goes on as soon as
// they have; after SweepEvery it is for the next round to begin again at the oldest.
func (r *Recovery) sweep(ctx context.Context) error {
	untilMS := max(r.cfg.Clock.NowMS()-r.cfg.Grace.Milliseconds(), r.sweeps.startMS.Load()-1)
	end := time.Now().Add(r.cfg.SweepEvery)
	for cursor, more := (persist.Cursor{}), true; more; {
		if !r.waitForWorkers(ctx, end) {
			if ctx.Err() == nil {
				kick(r.sweeps.kick) // there is more
			}
			return nil
		}
		page, err := r.sweepPage(ctx, cursor, untilMS)
		if err != nil {
			return err
		}
		cursor, more = page.Next, page.More
	}
	return nil
}

// waitForWorkers waits until no more is ready than ReadyLimit; false: it is end, or ctx
// has ended, and more is.
func (r *Recovery) waitForWorkers(ctx context.Context, end time.Time) bool {
	var ticker *time.Ticker
	for r.busy() {
		if ticker == nil {
			ticker = time.NewTicker(hungry)
			defer ticker.Stop()
		}
		select {
		case <-ctx.Done():
			return false
		case now := <-ticker.C:
			if now.After(end) {
				return false
			}
		}
	}
	return true
}

func (r *Recovery) busy() bool { return r.cfg.Ready() > r.cfg.ReadyLimit }

func (r *Recovery) sweepPage(ctx context.Context, after persist.Cursor, untilMS int64) (persist.Page, error) {
	ctx, cancel := r.patiently(ctx)
	defer cancel()
	ticket := r.cfg.Board.AskOverdue()
	defer r.cfg.Board.EndOverdue(ticket)
	page, err := r.cfg.Store.Window(ctx, after, untilMS, pageSize)
	if err == nil || len(page.Due) > 0 { // of several shards some have answered
		r.cfg.Clock.Observe(page.Clock)
		r.foundOverdue(ticket, page.Due)
	}
	return page, err
}

// foundOverdue hands over what a sweep has read.
func (r *Recovery) foundOverdue(ticket arming.Ticket, due []persist.Due) {
	startMS := r.sweeps.startMS.Load()
	old := 0 // so many were overdue at Start: pages are in order
	for old < len(due) && due[old].DueMS < startMS {
		old++
	}
	for _, d := range r.cfg.Overdue(wheelDues(due[:old])) {
		r.cfg.Board.Missed(ticket, d.ID)
	}
	taken := r.cfg.Found(wheelDues(due[old:]))
	for _, d := range taken {
		r.cfg.Board.Missed(ticket, d.ID)
	}
	r.stats.found.Add(uint64(len(taken)))
	if len(taken) > 0 {
		r.cfg.Logger.Info("sweep_found", slog.Int("tasks", len(taken)),
			slog.Uint64("missed_so_far", r.cfg.Board.MissedCount()), slog.Int("wheel_behind", r.cfg.Board.Waiting()))
	}
}

// reapAll makes due again what was claimed by one who has not settled it in time.
func (r *Recovery) reapAll(ctx context.Context) error {
	for ctx.Err() == nil {
		n, err := r.reap(ctx)
		if err != nil || n < pageSize {
			return err
		}
	}
	return nil
}

func (r *Recovery) reap(ctx context.Context) (n int, err error) {
	ctx, cancel := r.patiently(ctx)
	defer cancel()
	ticket := r.cfg.Board.Ask()
	defer r.cfg.Board.End(ticket)
	reaped, err := r.cfg.Store.Reap(ctx, pageSize)
	n = len(reaped)
	r.place(ticket, reaped, r.cfg.Reaped) // with an error too: some shards have answered
	r.stats.reaped.Add(uint64(n))
	return n, err
}

// place arms what is due later, and hands over what is overdue, but for more than
// workers can take up soon: that is left to the sweep. due is used up.
func (r *Recovery) place(ticket arming.Ticket, due []persist.Due, overdue func([]wheel.Due) []wheel.Due) {
	nowMS := r.cfg.Clock.NowMS()
	var late []wheel.Due
	later := slices.DeleteFunc(due, func(d persist.Due) bool {
		if d.DueMS <= nowMS {
			late = append(late, wheel.Due(d))
		}
		return d.DueMS <= nowMS
	})
	arming.ArmAll(r.cfg.Board, ticket, later)
	if len(late) > 0 && !r.busy() {
		overdue(late)
	}
}

func wheelDues(due []persist.Due) []wheel.Due {
	list := make([]wheel.Due, len(due))
	for i, d := range due {
		list[i] = wheel.Due(d)
	}
	return list
}

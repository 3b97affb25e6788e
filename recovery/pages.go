package recovery

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/orderwheel/orderwheel/internal/arming"
	"github.com/orderwheel/orderwheel/persist"
)

const (
	// steps: the edge moves ahead by so many parts of the Horizon at a time, and each
	// reading begins as much before the old edge.
	steps = 4
	// readSize is how many tasks are read at a time, and readAhead how often before the
	// first of them is armed: so the reading seldom waits for the wheel, or for its share of
	// the machine.
	readSize  = 2 * pageSize
	readAhead = 3
	// firstPages is how many pages of what is overdue Rebuild hands over before it
	// reads what is due next. The sweep goes on with the rest.
	firstPages = 4
	// drainFor is how long a reading waits for a wheel that hangs.
	drainFor = 10 * time.Second
)

// pages is the state of the reading ahead.
type pages struct {
	kick  chan struct{} // capacity 1: look at once
	turn  chan struct{} // capacity 1: full while somebody reads
	ready atomic.Bool   // Rebuild has ended well
	again atomic.Bool   // all up to the edge has to be read again: the wheel or the store is another

	// readMS: what is due up to then has been read, at least once since it was that
	// near. Written by who has the turn.
	readMS atomic.Int64
}

func (r *Recovery) step() int64 { return max(1, r.cfg.Horizon.Milliseconds()/steps) }

func (r *Recovery) pageEvery() time.Duration {
	return min(clockEvery, max(time.Millisecond, r.cfg.Horizon/(8*steps)))
}

// horizonMS is how far to read now.
func (r *Recovery) horizonMS() int64 {
	return min(r.cfg.Clock.NowMS()+r.cfg.Horizon.Milliseconds(), persist.MaxDueMS)
}

// Rebuild hands over the oldest of what is overdue and arms what is due within the
// Horizon, oldest first. It returns when all of that has been read, or with the error that
// ended the reading. What is overdue beyond what workers can take up is the sweep's.
func (r *Recovery) Rebuild(ctx context.Context) error {
	nowMS := r.cfg.Clock.NowMS()
	if err := r.rebuild(ctx, nowMS); err != nil {
		return fmt.Errorf("recovery: rebuilding after %d tasks: %w", r.stats.rebuilt.Load(), err)
	}
	r.pages.ready.Store(true)
	kick(r.pages.kick)
	return nil
}

func (r *Recovery) rebuild(ctx context.Context, nowMS int64) error {
	if err := r.takeTurn(ctx); err != nil {
		return err
	}
	defer r.giveTurn()
	edgeMS := r.horizonMS()
	r.cfg.Board.SetEdge(edgeMS)
	r.sweeps.startMS.Store(nowMS)
	more, err := r.firstOverdue(ctx, nowMS)
	if err != nil {
		return err
	}
	if more {
		kick(r.sweeps.kick)
	}
	n, err := r.read(ctx, persist.Cursor{DueMS: nowMS}, edgeMS)
	r.stats.rebuilt.Add(uint64(n))
	if err == nil {
		r.pages.readMS.Store(edgeMS)
	}
	return err
}

// firstOverdue hands over the oldest of what is overdue, a few pages at most. more:
// there is more.
func (r *Recovery) firstOverdue(ctx context.Context, nowMS int64) (more bool, err error) {
	page := persist.Page{More: true}
	for n := 0; n < firstPages && page.More && !r.busy(); n++ {
		if page, err = r.cfg.Store.Window(ctx, page.Next, nowMS-1, pageSize); err != nil {
			return false, err
		}
		r.cfg.Clock.Observe(page.Clock)
		r.cfg.Overdue(wheelDues(page.Due))
		r.stats.rebuilt.Add(uint64(len(page.Due)))
	}
	return page.More, nil
}

// turnPages moves the edge ahead with the clock, and reads what comes near. It may also
// have to read all again.
func (r *Recovery) turnPages(ctx context.Context) error {
	if !r.pages.ready.Load() {
		return nil
	}
	if err := r.takeTurn(ctx); err != nil {
		return err
	}
	defer r.giveTurn()
	if r.pages.again.Swap(false) {
		_, err := r.read(ctx, persist.Cursor{DueMS: max(r.cfg.Clock.NowMS(), 0)}, r.cfg.Board.Edge())
		if err != nil {
			r.pages.again.Store(true)
			return err
		}
		r.watch.rebuilt()
	}
	readMS, edgeMS := r.pages.readMS.Load(), r.horizonMS()
	if edgeMS-readMS < r.step() && !(edgeMS == persist.MaxDueMS && readMS < edgeMS) {
		return nil
	}
	r.cfg.Board.SetEdge(edgeMS) // before the reading begins: see package arming
	_, err := r.read(ctx, persist.Cursor{DueMS: max(readMS-r.step(), 0)}, edgeMS)
	if err == nil {
		r.pages.readMS.Store(edgeMS)
	}
	return err
}

// readAgain has all up to the edge read once more, soon.
func (r *Recovery) readAgain() {
	r.pages.again.Store(true)
	kick(r.pages.kick)
}

func (r *Recovery) takeTurn(ctx context.Context) error {
	select {
	case r.pages.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *Recovery) giveTurn() { <-r.pages.turn }

// answer is one page as the reader passes it on.
type answer struct {
	ticket arming.Ticket
	page   persist.Page
	err    error
}

// read arms what is due after the cursor and up to untilMS, and hands over what of
// it is overdue. While one page is being armed the next is on its way.
func (r *Recovery) read(ctx context.Context, after persist.Cursor, untilMS int64) (n int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan answer, readAhead)
	go r.readPages(ctx, after, untilMS, answers)
	for a := range answers {
		if a.err == nil && err == nil {
			r.cfg.Clock.Observe(a.page.Clock)
			n += len(a.page.Due)
			r.place(a.ticket, a.page.Due, r.cfg.Overdue) // and uses the page up
			err = r.drain(ctx)
		}
		r.cfg.Board.End(a.ticket)
		if err = errors.Join(err, a.err); err != nil {
			cancel() // the reader ends, and closes answers
		}
		r.pager.goesOn()
	}
	if err == nil {
		err = ctx.Err() // it may have ended the reader before a page
	}
	return n, err
}

// readPages reads page after page, and closes answers. Who receives ends the tickets.
func (r *Recovery) readPages(ctx context.Context, cursor persist.Cursor, untilMS int64, answers chan<- answer) {
	defer close(answers)
	for more := true; more && ctx.Err() == nil; {
		// What has become overdue meanwhile is the sweep's where workers are busy.
		if nowMS := r.cfg.Clock.NowMS(); cursor.DueMS < nowMS && r.busy() {
			cursor = persist.Cursor{DueMS: nowMS}
		}
		a := answer{ticket: r.cfg.Board.Ask()}
		a.err = guarded(func() (err error) {
			a.page, err = r.cfg.Store.Window(ctx, cursor, untilMS, readSize)
			return err
		})
		answers <- a
		cursor, more = a.page.Next, a.page.More && a.err == nil
	}
}

// drain waits until the wheel knows what was armed, so that a reading is no faster than
// it. For one that hangs it does not wait for ever.
func (r *Recovery) drain(ctx context.Context) error {
	waitCtx, cancel := context.WithTimeout(ctx, drainFor)
	defer cancel()
	if r.cfg.Board.Drain(waitCtx) != nil {
		return ctx.Err()
	}
	return nil
}

// pagesProblem says since when the reading ahead is behind; empty: it is not.
func (r *Recovery) pagesProblem() string {
	if !r.pages.ready.Load() {
		return ""
	}
	leftMS := r.pages.readMS.Load() - r.cfg.Clock.NowMS()
	if leftMS >= 2*r.step() || r.pages.readMS.Load() == persist.MaxDueMS {
		return ""
	}
	return fmt.Sprintf("tasks that are due after %v are not armed yet, and will be found late by the sweep",
		time.UnixMilli(r.pages.readMS.Load()).UTC().Format(time.RFC3339Nano))
}

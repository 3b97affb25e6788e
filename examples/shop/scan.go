package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/sqlstore"
)

const (
	scanPage = 500
	// engineLate is how long an order of the engine is overdue before the scan takes it: by then
	// the engine has failed.
	engineLate = time.Minute
)

// scan is the job that looks for overdue orders and closes them, with the same close as the
// engine. Run beside the engine, or in many instances, it does no harm: one close wins, the others
// find the order closed.
type scan struct {
	store   *sqlstore.Store
	dialect sqlstore.Dialect
	share   share // of the engine
	now     func(context.Context) (time.Time, error)
	next    func(time.Time) time.Time
	log     *slog.Logger

	mu struct {
		sync.Mutex
		stats scanStats
	}
}

// scanStats counts since the start of the process.
type scanStats struct {
	Rounds          int
	Closed          int    // orders that are not the engine's
	ClosedForEngine int    // orders that the engine should have closed a minute ago or more: must stay 0
	Failed          int    // closes that failed; the next round tries again
	Problem         string // of the last round; empty: none
}

// run makes a round at each instant of next until ctx ends, and a minute after one that failed, so
// that a database that was away at 3 o'clock does not cost a night. Where only the scan closes some
// orders, the first round is made at once.
func (s *scan) run(ctx context.Context) {
	if s.share < everyOrder {
		s.round(ctx)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(s.pause(time.Now())):
		}
		s.round(ctx)
	}
}

// pause is how long to wait for the next round.
func (s *scan) pause(now time.Time) time.Duration {
	pause := s.next(now).Sub(now)
	if s.stats().Problem != "" {
		return min(pause, scanAlone)
	}
	return pause
}

func (s *scan) round(ctx context.Context) {
	var r scanStats
	err := s.scan(ctx, &r)
	if ctx.Err() != nil {
		return // the process stops
	}
	if err != nil {
		r.Problem = err.Error()
		s.log.Error("scan_failed", slog.Any("error", err))
	}
	if r.ClosedForEngine > 0 {
		s.log.Error("scan_closed_for_engine", slog.Int("orders", r.ClosedForEngine))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := &s.mu.stats
	sum.Rounds++
	sum.Closed += r.Closed
	sum.ClosedForEngine += r.ClosedForEngine
	sum.Failed += r.Failed
	sum.Problem = r.Problem
}

func (s *scan) stats() scanStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.stats
}

// scan closes what is overdue, the oldest first. An order that fails holds up none behind it.
func (s *scan) scan(ctx context.Context, r *scanStats) error {
	now, err := s.now(ctx)
	if err != nil {
		return err
	}
	var failed error
	for after := (overdue{}); ; {
		page, err := s.page(ctx, now, after)
		if err != nil {
			return fmt.Errorf("read the overdue orders: %w", err)
		}
		if err := s.closePage(ctx, page, now, r); err != nil {
			failed = err
		}
		if len(page) < scanPage || ctx.Err() != nil {
			return failed
		}
		after = page[len(page)-1]
	}
}

// closePage closes the orders of a page, but for those that are the engine's for now. The error is
// that of one which failed.
func (s *scan) closePage(ctx context.Context, page []overdue, now time.Time, r *scanStats) (failed error) {
	var nos []string
	for _, o := range page {
		if !s.share.has(o.no) || now.UnixMilli()-o.expireMS >= engineLate.Milliseconds() {
			nos = append(nos, o.no)
		}
	}
	results, errs := s.store.CloseMany(ctx, nos, now)
	for i, no := range nos {
		switch {
		case errs[i] != nil:
			r.Failed++
			failed = errs[i]
		case results[i].Outcome != order.ClosedNow:
		case s.share.has(no):
			r.ClosedForEngine++
		default:
			r.Closed++
		}
	}
	return failed
}

type overdue struct {
	expireMS int64
	no       string
}

// page reads overdue orders by expire_at and number, on from after: never by OFFSET, which would
// pass over orders as those before them are closed. It needs the index of createScanIndex.
func (s *scan) page(ctx context.Context, now time.Time, after overdue) ([]overdue, error) {
	rows, err := s.store.DB().QueryContext(ctx, s.dialect.Rebind(overdueOrders),
		now.UnixMilli(), after.expireMS, after.expireMS, after.no, scanPage)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var page []overdue
	for rows.Next() {
		var o overdue
		if err := rows.Scan(&o.expireMS, &o.no); err != nil {
			return nil, err
		}
		page = append(page, o)
	}
	return page, rows.Err()
}

const overdueOrders = `
	SELECT expire_at, order_no FROM orders
	WHERE status = 'unpaid' AND expire_at <= ? AND expire_at >= ? AND (expire_at > ? OR order_no > ?)
	ORDER BY expire_at, order_no LIMIT ?`

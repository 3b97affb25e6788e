package sqlstore

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/internal/check"
)

// maxTogether is how many orders one transaction closes at most: enough to be quick, few enough
// that it is short, and that its arguments fit into every dialect's statements.
const maxTogether = 500

// togetherFor is how long a transaction of CloseMany is tried again: a row that somebody keeps locked
// must cost neither its batch, nor those that are closed one by one behind its order, all the time
// that ctx has.
const togetherFor = 3 * time.Second

// patience is that of a transaction of CloseMany. Where there is one writer all wait for the same
// lock, and one by one is no way around it.
func (s *Store) patience() time.Duration {
	if s.dialect.SingleWriter() {
		return always
	}
	return togetherFor
}

// CloseMany closes many orders as Close does, most of them in one transaction, and answers for
// each, in the order of nos. An order whose answer is an error is not closed, but after
// order.ErrUnknownOutcome perhaps; the others are not concerned.
//
// Where the transaction fails, whatever for, its orders are closed one by one, so that one bad
// order holds up no other. So are those that another transaction has locked just now; what stays
// locked is order.ErrBusy sooner than by Close. A number that stands in nos twice gets the same
// answer twice.
func (s *Store) CloseMany(ctx context.Context, nos []string, now time.Time) ([]order.Result, []error) {
	b := batch{results: map[string]order.Result{}, errs: map[string]error{}}
	var f check.Faults
	f.Instant("now", now)
	if err := f.Err(order.ErrInvalid); err != nil {
		b.fail(nos, err)
	} else {
		distinct := slices.Compact(slices.Sorted(slices.Values(nos)))
		distinct = slices.DeleteFunc(distinct, func(no string) bool {
			if check.Fits(no) {
				return false
			}
			b.results[no] = order.Result{Outcome: order.NotFound}
			return true
		})
		for part := range slices.Chunk(distinct, maxTogether) {
			s.closePart(ctx, part, now, &b)
		}
	}
	results, errs := make([]order.Result, len(nos)), make([]error, len(nos))
	for i, no := range nos {
		results[i], errs[i] = b.results[no], b.errs[no]
	}
	return results, errs
}

// batch has what came of each order.
type batch struct {
	results map[string]order.Result
	errs    map[string]error
}

func (b *batch) fail(nos []string, err error) {
	for _, no := range nos {
		b.errs[no] = fmt.Errorf("close order %q: %w", no, err)
	}
}

// closePart closes the orders of one transaction.
func (s *Store) closePart(ctx context.Context, nos []string, now time.Time, b *batch) {
	clear, answered, err := s.screen(ctx, nos, now)
	if err != nil {
		b.fail(nos, err)
		return
	}
	for no, res := range answered {
		b.results[no] = res
	}
	left := clear
	if len(clear) > 1 {
		left = s.closeTogether(ctx, clear, now, b)
	}
	for _, no := range left {
		b.results[no], b.errs[no] = s.closeOne(ctx, no, now, s.patience())
	}
}

// closeTogether closes nos in one transaction and returns those that have no answer from it.
func (s *Store) closeTogether(ctx context.Context, nos []string, now time.Time, b *batch) (left []string) {
	var found map[string]order.Result
	err := s.writeFor(ctx, s.patience(), func(t *tx) (err error) {
		found, err = t.closeMany(nos, now.UnixMilli())
		return err
	})
	s.stats.batches.Add(1)
	switch {
	case err != nil && ctx.Err() != nil:
		b.fail(nos, err)
		return nil
	case err != nil:
		s.stats.batchesFailed.Add(1)
		s.opts.Logger.WarnContext(ctx, "batch_failed", slog.Int("orders", len(nos)), slog.Any("err", err))
		return nos
	}
	for _, no := range nos {
		res, ok := found[no]
		if !ok {
			left = append(left, no)
			continue
		}
		b.results[no] = res
		if res.Outcome == order.ClosedNow {
			s.closed(ctx, no, order.Timeout)
		}
	}
	return left
}

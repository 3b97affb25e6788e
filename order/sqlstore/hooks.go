package sqlstore

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/orderwheel/orderwheel/order"
)

// askTogether is how many orders of one CloseMany are asked about at once.
const askTogether = 16

// screen asks the payment provider about those of nos that are unpaid and due, outside of any
// transaction. It returns those that may be closed, and the answers for all others. An order that
// changes after this look at it is found out by the close; one that becomes due after it is not
// closed without being asked about.
func (s *Store) screen(ctx context.Context, nos []string, now time.Time) (clear []string, answered map[string]order.Result, err error) {
	if s.opts.Ask == nil {
		return nos, nil, nil
	}
	var found map[string]row
	err = s.retry(ctx, func() (err error) {
		found, err = s.rows(ctx, nos)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	answered = map[string]order.Result{}
	var due []string
	for _, no := range nos {
		res, isDue := found[no].look(now.UnixMilli())
		if isDue {
			due = append(due, no)
		} else {
			answered[no] = res
		}
	}
	begun := time.Now() // a stopwatch: what asking took is added to the engine's clock
	said := s.askAll(ctx, due)
	now = now.Add(time.Since(begun))
	for i, no := range due {
		if said[i] == order.NotPaid {
			clear = append(clear, no)
		} else {
			answered[no] = order.Result{Outcome: order.HeldBack, AskAgain: now.Add(s.pause(now, found[no].expireMS.Int64))}
		}
	}
	return clear, answered, nil
}

// pause is how long to wait until the provider is asked again: as long as the order is overdue, so
// that it doubles, within the bounds of Options.
func (s *Store) pause(now time.Time, expireMS int64) time.Duration {
	return min(max(now.Sub(time.UnixMilli(expireMS)), s.opts.AskAgainMin), s.opts.AskAgainMax)
}

// rows reads what a close looks at.
func (s *Store) rows(ctx context.Context, nos []string) (map[string]row, error) {
	rows, err := s.db.QueryContext(ctx, s.dialect.Rebind(selectRows+in(len(nos))), anys(nos)...)
	if err != nil {
		return nil, err
	}
	return scanRows(rows)
}

// askAll asks about each of nos, some at a time, and returns when all have answered, or with
// AskTimeout: who has not answered then does not know.
func (s *Store) askAll(ctx context.Context, nos []string) []order.ProviderAnswer {
	ctx, cancel := context.WithTimeout(ctx, s.opts.AskTimeout)
	defer cancel()
	answers := make([]order.ProviderAnswer, len(nos))
	var wg sync.WaitGroup
	slots := make(chan struct{}, askTogether)
	for i, no := range nos {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			answers[i] = s.ask(ctx, no)
		})
	}
	wg.Wait()
	return answers
}

// ask asks about one order, and counts the answer.
func (s *Store) ask(ctx context.Context, no string) order.ProviderAnswer {
	answer, err := order.PaymentUnknown, ctx.Err()
	if err == nil {
		answer, err = s.callAsk(ctx, no)
	}
	s.stats.asked.Add(1)
	switch {
	case err != nil:
		s.stats.askFailed.Add(1)
		s.opts.Logger.WarnContext(ctx, "ask_failed", slog.String("order", no), slog.Any("err", err))
		return order.PaymentUnknown
	case answer == order.NotPaid:
		s.stats.notPaid.Add(1)
	case answer == order.PaidThere:
		s.stats.paidThere.Add(1)
	default:
		s.stats.unknown.Add(1)
	}
	return answer
}

func (s *Store) callAsk(ctx context.Context, no string) (answer order.ProviderAnswer, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("Options.Ask panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return s.opts.Ask(ctx, no)
}

// closed tells the application that an order is closed, after the commit.
func (s *Store) closed(ctx context.Context, no string, reason order.Reason) {
	if s.opts.AfterClose == nil {
		return
	}
	s.stats.told.Add(1)
	defer func() {
		if p := recover(); p != nil {
			s.stats.tellPanicked.Add(1)
			s.opts.Logger.ErrorContext(ctx, "after_close_panicked", slog.String("order", no),
				slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
		}
	}()
	s.opts.AfterClose(ctx, no, reason)
}

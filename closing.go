package orderwheel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/orderwheel/orderwheel/executor"
)

// CloseResult is what a Closer says of one order.
type CloseResult interface {
	// Done reports that the order needs no further close: closed, paid, or
	// closed before.
	Done() bool
	// NotYet gives the later instant at which to come again: the order was
	// extended, or must not be closed just now.
	NotYet() (at time.Time, ok bool)
}

// Closer closes one order if it is unpaid and expires at now or before. It must
// be safe to run again, and safe for concurrent use. Package order has one.
type Closer[R CloseResult] interface {
	Close(ctx context.Context, orderNo string, now time.Time) (R, error)
}

// ErrNotClosed is returned by a handler made by Closing when the order is
// neither done nor due later: the close does not know it. The task is retried, for the
// order may yet come.
var ErrNotClosed = errors.New("orderwheel: order was not closed")

// Closing makes a handler that closes the order whose number is the task's id.
// What is done is acknowledged; what is extended, or held back, comes back at its new
// time, uncounted; an error, and an order that the closer does not know, is retried
// with backoff, and is dead after Retry.Attempts.
func Closing[R CloseResult](c Closer[R]) executor.Handler {
	return func(ctx context.Context, t executor.Task) error {
		result, err := c.Close(ctx, t.ID, t.Now)
		return verdict(t, result, err)
	}
}

// verdict is what a handler says of a task after its close.
func verdict[R CloseResult](t executor.Task, result R, err error) error {
	if err != nil {
		return err
	}
	if result.Done() {
		return nil
	}
	if at, ok := result.NotYet(); ok {
		return executor.RetryAt(at)
	}
	return fmt.Errorf("%w: order %q: %v", ErrNotClosed, t.ID, result)
}

// ManyCloser closes many orders, each as Closer.Close does, in one transaction for example.
// It returns a result and an error for each, in their order, and one order's error does not concern
// the others. Package order/sqlstore has one.
type ManyCloser[R CloseResult] interface {
	CloseMany(ctx context.Context, orderNos []string, now time.Time) ([]R, []error)
}

// ClosingMany makes a handler of batches (Config.BatchHandler) that closes the orders whose
// numbers are the ids of the tasks. For each task it answers what Closing would. Orders are
// closed by the clock of their own claim: those of claims of different times, or shards,
// take a call each.
func ClosingMany[R CloseResult](c ManyCloser[R]) executor.BatchHandler {
	return func(ctx context.Context, tasks []executor.Task) []error {
		verdicts := make([]error, len(tasks))
		for now, at := range byNow(tasks) {
			ids := make([]string, len(at))
			for i, k := range at {
				ids[i] = tasks[k].ID
			}
			results, errs := c.CloseMany(ctx, ids, now)
			for i, k := range at {
				if len(results) != len(ids) || len(errs) != len(ids) {
					verdicts[k] = fmt.Errorf("orderwheel: CloseMany returned %d results and %d errors for %d orders",
						len(results), len(errs), len(ids))
					continue
				}
				verdicts[k] = verdict(tasks[k], results[i], errs[i])
			}
		}
		return verdicts
	}
}

// byNow has the places of the tasks of each instant of claim.
func byNow(tasks []executor.Task) map[time.Time][]int {
	at := map[time.Time][]int{}
	for i, t := range tasks {
		at[t.Now] = append(at[t.Now], i)
	}
	return at
}

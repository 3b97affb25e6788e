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
	// NotYet gives the later instant at which the order expires, if it was
	// extended.
	NotYet() (expireAt time.Time, ok bool)
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
// What is done is acknowledged; what is extended comes back at its new time,
// uncounted; an error, and an order that the closer does not know, is retried
// with backoff, and is dead after Retry.Attempts.
func Closing[R CloseResult](c Closer[R]) executor.Handler {
	return func(ctx context.Context, t executor.Task) error {
		result, err := c.Close(ctx, t.ID, t.Now)
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
}

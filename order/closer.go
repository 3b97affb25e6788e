package order

import (
	"context"
	"time"
)

// Closer closes one order that was not paid in time. The sqlstore package has one; an application
// with tables of its own writes its own.
//
// Close closes the order if it is unpaid and expires at now or before, gives its stock and its
// coupon back, all in one transaction, and says what it found. now is the engine's clock: Close
// compares expire_at with it, writes it as the time of closing, and reads no other clock.
//
// An error means that the outcome is not known to be right: the engine calls Close again later, and
// the call then finds whatever stands. So Close must be safe to repeat and to run twice at once. It
// returns early, with nothing applied, when ctx ends.
type Closer interface {
	Close(ctx context.Context, orderNo string, now time.Time) (Result, error)
}

package order

import (
	"errors"
	"fmt"
	"time"
)

// Status is the state of an order: unpaid -> paid | closed, and never back.
type Status string

// The states of an order.
const (
	Unpaid Status = "unpaid"
	Paid   Status = "paid"
	Closed Status = "closed"
)

// Reason says why an order was closed.
type Reason string

// The reasons.
const (
	Timeout   Reason = "timeout"   // it was not paid in time
	Abandoned Reason = "abandoned" // its user gave it up
)

// Errors that the operations on orders return; test with errors.Is. Unless its comment says
// otherwise, an error means that nothing was changed.
var (
	ErrUnknownOrder  = errors.New("order: no such order")
	ErrDuplicate     = errors.New("order: number or id exists already")
	ErrOutOfStock    = errors.New("order: not enough stock")
	ErrCoupon        = errors.New("order: coupon is not usable")
	ErrInvalid       = errors.New("order: invalid")
	ErrTooManyUnpaid = errors.New("order: the user has too many unpaid orders")
	ErrNotUnpaid     = errors.New("order: not unpaid any more")
	ErrWrongAmount   = errors.New("order: the payment's amount is not the order's")
	ErrPaymentReused = errors.New("order: the payment id belongs to another order")

	// ErrInconsistency says that stock or coupon is not as this order left it: something else
	// changed them. The message has the order, the sku or coupon, and the figures. Trying again
	// does not help; somebody has to look.
	ErrInconsistency = errors.New("order: stock or coupon is not as this order left it")

	// ErrBusy says that the database stayed locked, or kept choosing this transaction as the victim
	// of a deadlock, for as long as the store tries. Trying again later helps.
	ErrBusy = errors.New("order: database busy")

	// ErrUnknownOutcome says that the answer to a commit was lost: all of it stands, or nothing
	// does. Call again: every operation but AddStock finds out which, and none of them applies its
	// effects twice.
	ErrUnknownOutcome = errors.New("order: outcome unknown")
)

// Order is what a customer placed. Ids are 1 to 256 bytes of UTF-8. Money is an integer of the
// smallest unit of the currency.
type Order struct {
	No       string
	UserID   string
	Amount   int64     // at least 0
	CouponID string    // empty: none
	ExpireAt time.Time // zero: it never expires (cash on delivery) and is never scheduled
	Items    []Item    // at least one, each sku once
}

// Item is one line of an order.
type Item struct {
	SKU      string
	Quantity int64 // 1 to 1,000,000,000
}

// Payment is money that arrived for an order. ID is the payment provider's and identifies it: the
// same payment told twice counts once.
type Payment struct {
	ID      string
	OrderNo string
	Amount  int64
	At      time.Time
}

// PayOutcome is what became of a payment. No payment is dropped: it pays its order, or a refund
// record stands, or there is an error.
type PayOutcome int

// The outcomes of a payment.
const (
	PaidNow     PayOutcome = iota + 1 // this call paid the order
	PaidAlready                       // this same payment paid it before; nothing was changed
	Refunded                          // the order was closed or paid by another payment: a refund record stands, now or since before
)

func (o PayOutcome) String() string {
	switch o {
	case PaidNow:
		return "paid"
	case PaidAlready:
		return "already paid"
	case Refunded:
		return "refunded"
	}
	return fmt.Sprintf("PayOutcome(%d)", int(o))
}

// CloseOutcome is what became of a close.
type CloseOutcome int

// The outcomes of a close.
const (
	ClosedNow     CloseOutcome = iota + 1 // this call closed it and gave everything back
	ClosedAlready                         // an earlier call did
	WasPaid                               // it is paid; nothing was changed
	NotYetDue                             // it expires later; nothing was changed
	NotFound                              // no such order; nothing was changed
	HeldBack                              // the payment provider does not say that it is not paid; nothing was changed
)

func (o CloseOutcome) String() string {
	switch o {
	case ClosedNow:
		return "closed"
	case ClosedAlready:
		return "already closed"
	case WasPaid:
		return "paid"
	case NotYetDue:
		return "not yet"
	case NotFound:
		return "unknown order"
	case HeldBack:
		return "held back"
	}
	return fmt.Sprintf("CloseOutcome(%d)", int(o))
}

// Result is the answer of a close.
type Result struct {
	Outcome  CloseOutcome
	ExpireAt time.Time // NotYetDue: when to come again; zero: never
	AskAgain time.Time // HeldBack: when to come again
}

// Done reports whether the order needs no further close.
func (r Result) Done() bool {
	switch r.Outcome {
	case ClosedNow, ClosedAlready, WasPaid:
		return true
	case NotYetDue:
		return r.ExpireAt.IsZero()
	}
	return false
}

// NotYet gives the later instant at which to come again: the order expires then, or the payment
// provider is to be asked again. ok is false when there is none.
func (r Result) NotYet() (at time.Time, ok bool) {
	switch {
	case r.Outcome == NotYetDue && !r.ExpireAt.IsZero():
		return r.ExpireAt, true
	case r.Outcome == HeldBack:
		return r.AskAgain, true
	}
	return time.Time{}, false
}

func (r Result) String() string { return r.Outcome.String() }

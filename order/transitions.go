package order

import "fmt"

// Operation is what can happen to an order.
type Operation string

// The operations. Close is the engine's, at expire_at or later; Abandon is the user's, at any time.
const (
	Create  Operation = "Create"
	Pay     Operation = "Pay"
	Extend  Operation = "Extend"
	Close   Operation = "Close"
	Abandon Operation = "Abandon"
)

// Absent is the state of an order that does not exist.
const Absent Status = "absent"

// Transition says what one operation does to an order in one state. Where To is From the order
// stays as it is, except that Extend moves its expire_at.
type Transition struct {
	Operation Operation
	From, To  Status
	Case      string       // where the answer depends on more than the state: on what
	Answer    fmt.Stringer // what the operation returns; nil: nothing but the error
	Err       error        // its sentinel; nil: none
}

// Transitions lists every operation in every state. There are no others: a store that changes an
// order in another way breaks the promise of this package.
func Transitions() []Transition {
	return []Transition{
		{Create, Absent, Unpaid, "", nil, nil},
		{Create, Unpaid, Unpaid, "", nil, ErrDuplicate},
		{Create, Paid, Paid, "", nil, ErrDuplicate},
		{Create, Closed, Closed, "", nil, ErrDuplicate},

		{Pay, Absent, Absent, "", nil, ErrUnknownOrder},
		{Pay, Unpaid, Paid, "", PaidNow, nil},
		{Pay, Unpaid, Unpaid, CaseOtherAmount, nil, ErrWrongAmount},
		{Pay, Paid, Paid, CaseSamePayment, PaidAlready, nil},
		{Pay, Paid, Paid, "", Refunded, nil},
		{Pay, Closed, Closed, "", Refunded, nil},

		{Extend, Absent, Absent, "", nil, ErrUnknownOrder},
		{Extend, Unpaid, Unpaid, "", nil, nil},
		{Extend, Paid, Paid, "", nil, ErrNotUnpaid},
		{Extend, Closed, Closed, "", nil, ErrNotUnpaid},

		{Close, Absent, Absent, "", NotFound, nil},
		{Close, Unpaid, Closed, "", ClosedNow, nil},
		{Close, Unpaid, Unpaid, CaseNotYetDue, NotYetDue, nil},
		{Close, Unpaid, Unpaid, CaseHeldBack, HeldBack, nil},
		{Close, Paid, Paid, "", WasPaid, nil},
		{Close, Closed, Closed, "", ClosedAlready, nil},

		{Abandon, Absent, Absent, "", NotFound, nil},
		{Abandon, Unpaid, Closed, "", ClosedNow, nil},
		{Abandon, Unpaid, Closed, CaseNotYetDue, ClosedNow, nil},
		{Abandon, Paid, Paid, "", WasPaid, nil},
		{Abandon, Closed, Closed, "", ClosedAlready, nil},
	}
}

// The cases of a Transition.
const (
	CaseOtherAmount = "another amount" // than the order's
	CaseSamePayment = "the same payment"
	CaseNotYetDue   = "before expire_at"
	CaseHeldBack    = "the payment provider does not say that it is not paid"
)

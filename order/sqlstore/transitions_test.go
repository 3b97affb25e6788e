package sqlstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/sqlstore"
)

// reach brings the order o into a state.
func (s *shop) reach(state order.Status) {
	s.t.Helper()
	if state == order.Absent {
		return
	}
	s.create("o", withCoupon("c1"))
	switch state {
	case order.Paid:
		require.Equal(s.t, order.PaidNow, s.pay(payment("first", "o")))
	case order.Closed:
		require.Equal(s.t, order.ClosedNow, s.close("o", due).Outcome)
	}
}

// apply runs the operation of a transition on the order o.
func (s *shop) apply(tr order.Transition) (any, error) {
	ctx, now := s.t.Context(), due
	if tr.Case == order.CaseNotYetDue {
		now = due.Add(-ms)
	}
	switch tr.Operation {
	case order.Create:
		return nil, s.Create(ctx, newOrder("o"), t0)
	case order.Extend:
		return nil, s.Extend(ctx, "o", due.Add(time.Hour))
	case order.Close:
		if tr.Case == order.CaseHeldBack {
			s = s.with(sqlstore.Options{Ask: says(order.PaymentUnknown)})
		}
		r, err := s.Close(ctx, "o", now)
		return r.Outcome, err
	case order.Abandon:
		r, err := s.Abandon(ctx, "o", now)
		return r.Outcome, err
	case order.Pay:
		p := payment("second", "o")
		switch tr.Case {
		case order.CaseSamePayment:
			p = payment("first", "o")
		case order.CaseOtherAmount:
			p.Amount++
		}
		return s.Pay(ctx, p)
	}
	s.t.Fatalf("no such operation: %s", tr.Operation)
	return nil, nil
}

func (s *shop) state(no string) order.Status {
	s.t.Helper()
	if s.count(`SELECT COUNT(*) FROM orders WHERE order_no = ?`, no) == 0 {
		return order.Absent
	}
	return s.status(no)
}

// Every operation in every state: what order.Transitions says, and nothing else.
func TestTheStoreDoesWhatTheTableOfTransitionsSays(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		for _, tr := range order.Transitions() {
			t.Run(fmt.Sprint(tr.Operation, " of ", tr.From, " ", tr.Case), func(t *testing.T) {
				t.Parallel()
				s := setup(t, db)
				s.reach(tr.From)
				before := dump(t, s)

				got, err := s.apply(tr)
				require.ErrorIs(t, err, tr.Err)
				if tr.Answer != nil {
					require.Equal(t, any(tr.Answer), got)
				}
				require.Equal(t, tr.To, s.state("o"))
				changes := tr.From != tr.To || tr.Operation == order.Extend && tr.Err == nil || tr.Answer == order.Refunded
				require.Equal(t, changes, !equal(before, dump(t, s)), "all tables")
			})
		}
	})
}

func equal(a, b []string) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

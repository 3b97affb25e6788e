package sqlstore_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/sqlstore"
	"github.com/orderwheel/orderwheel/order/sqlstore/sqlite"
)

var (
	errInjected = errors.New("injected")
	errStopped  = errors.New("injected: stopped by another transaction")
)

// faultyDialect takes errStopped for what a deadlock or a lock is in other databases.
type faultyDialect struct{ sqlite.Dialect }

func (d faultyDialect) Retryable(err error) bool {
	return errors.Is(err, errStopped) || d.Dialect.Retryable(err)
}

// An operation under test: prepare makes what it needs, run is repeatable. want is the answer of
// the run that applies it, again of a run after that.
type operation struct {
	name        string
	prepare     func(*shop)
	run         func(context.Context, *shop) (any, error)
	want, again any
	againErr    error
}

var operations = []operation{
	{
		name:    "create",
		prepare: func(s *shop) { s.create("other") },
		run: func(ctx context.Context, s *shop) (any, error) {
			return nil, s.Create(ctx, newOrder("o", withCoupon("c1")), t0)
		},
		againErr: order.ErrDuplicate,
	},
	{
		name:    "pay",
		prepare: func(s *shop) { s.create("o", withCoupon("c1")) },
		run:     func(ctx context.Context, s *shop) (any, error) { return s.Pay(ctx, payment("p", "o")) },
		want:    order.PaidNow, again: order.PaidAlready,
	},
	{
		name: "pay late",
		prepare: func(s *shop) {
			s.create("o", withCoupon("c1"))
			s.close("o", due)
		},
		run:  func(ctx context.Context, s *shop) (any, error) { return s.Pay(ctx, payment("p", "o")) },
		want: order.Refunded, again: order.Refunded,
	},
	{
		name:    "close",
		prepare: func(s *shop) { s.create("o", withCoupon("c1")) },
		run:     func(ctx context.Context, s *shop) (any, error) { return s.Close(ctx, "o", due) },
		want:    order.Result{Outcome: order.ClosedNow}, again: order.Result{Outcome: order.ClosedAlready},
	},
	{
		name:    "close that leaves messages",
		prepare: func(s *shop) { s.create("o", withCoupon("c1")) },
		run: func(ctx context.Context, s *shop) (any, error) {
			return s.with(sqlstore.Options{Outbox: []string{"k1", "k2"}}).Close(ctx, "o", due)
		},
		want: order.Result{Outcome: order.ClosedNow}, again: order.Result{Outcome: order.ClosedAlready},
	},
	{
		name:    "close that is asked about",
		prepare: func(s *shop) { s.create("o", withCoupon("c1")) },
		run: func(ctx context.Context, s *shop) (any, error) {
			return s.with(sqlstore.Options{Ask: says(order.NotPaid)}).Close(ctx, "o", due)
		},
		want: order.Result{Outcome: order.ClosedNow}, again: order.Result{Outcome: order.ClosedAlready},
	},
	{
		name:    "abandon",
		prepare: func(s *shop) { s.create("o", withCoupon("c1")) },
		run:     func(ctx context.Context, s *shop) (any, error) { return s.Abandon(ctx, "o", t0) },
		want:    order.Result{Outcome: order.ClosedNow}, again: order.Result{Outcome: order.ClosedAlready},
	},
	{
		name:    "close not yet due",
		prepare: func(s *shop) { s.create("o") },
		run:     func(ctx context.Context, s *shop) (any, error) { return s.Close(ctx, "o", t0) },
		want:    order.Result{Outcome: order.NotYetDue, ExpireAt: due}, again: order.Result{Outcome: order.NotYetDue, ExpireAt: due},
	},
	{
		name:    "extend",
		prepare: func(s *shop) { s.create("o") },
		run:     func(ctx context.Context, s *shop) (any, error) { return nil, s.Extend(ctx, "o", due.Add(time.Hour)) },
	},
}

// forEachStep runs test on each step of each operation, until one is beyond the last. arm gets the
// number of the step; it says whether the operation came that far.
func forEachStep(t *testing.T, test func(t *testing.T, op operation, k int) (reached bool)) {
	for _, op := range operations {
		t.Run(op.name, func(t *testing.T) {
			t.Parallel()
			k := 0
			for test(t, op, k) {
				k++
			}
			require.GreaterOrEqual(t, k, 3, "begin, a statement, commit")
			t.Logf("%d steps", k)
		})
	}
}

// at calls do at the k-th step.
func at(k int, reached *atomic.Bool, do func(ctx context.Context, step string) error) func(context.Context, string) error {
	var n atomic.Int64
	return func(ctx context.Context, step string) error {
		if n.Add(1)-1 != int64(k) {
			return nil
		}
		reached.Store(true)
		return do(ctx, step)
	}
}

// applied makes the operation's shop, and has the tables before and after it.
func (op operation) applied(t *testing.T) (s *shop, c *faultConnector, before, after []string) {
	t.Helper()
	twin, _ := setupFaulty(t)
	op.prepare(twin)
	got, err := op.run(t.Context(), twin)
	require.NoError(t, err)
	require.Equal(t, op.want, got)

	s, c = setupFaulty(t)
	op.prepare(s)
	return s, c, dump(t, s.DB()), dump(t, twin.DB())
}

// rerun runs the operation without faults: it must end in the state after it.
func (op operation) rerun(t *testing.T, s *shop, c *faultConnector, after []string, done bool) {
	t.Helper()
	c.disarm()
	got, err := op.run(t.Context(), s)
	if done {
		require.ErrorIs(t, err, op.againErr)
		require.Equal(t, op.again, got)
	} else {
		require.NoError(t, err)
		require.Equal(t, op.want, got)
	}
	require.Equal(t, after, dump(t, s.DB()), "effects once")
}

func TestAStepThatFailsAppliesNothingAndARerunCompletes(t *testing.T) {
	t.Parallel()
	forEachStep(t, func(t *testing.T, op operation, k int) bool {
		s, c, before, after := op.applied(t)
		var reached atomic.Bool
		c.arm(faults{before: at(k, &reached, func(context.Context, string) error { return errInjected })})
		_, err := op.run(t.Context(), s)
		if !reached.Load() {
			require.NoError(t, err)
			return false
		}
		require.ErrorIs(t, err, errInjected)
		require.Equal(t, before, dump(t, s.DB()))
		op.rerun(t, s, c, after, false)
		return true
	})
}

func TestAStepWhoseAnswerIsLostIsFoundOutByARerun(t *testing.T) {
	t.Parallel()
	forEachStep(t, func(t *testing.T, op operation, k int) bool {
		s, c, before, after := op.applied(t)
		var reached atomic.Bool
		var lost string
		c.arm(faults{after: at(k, &reached, func(_ context.Context, step string) error {
			lost = step
			return errInjected
		})})
		_, err := op.run(t.Context(), s)
		if !reached.Load() {
			require.NoError(t, err)
			return false
		}
		require.ErrorIs(t, err, errInjected)
		if lost == "commit" {
			require.ErrorIs(t, err, order.ErrUnknownOutcome)
			require.Equal(t, after, dump(t, s.DB()))
		} else {
			require.NotErrorIs(t, err, order.ErrUnknownOutcome)
			require.Equal(t, before, dump(t, s.DB()))
		}
		op.rerun(t, s, c, after, lost == "commit")
		return true
	})
}

func TestATransactionThatOthersStopIsRunAgain(t *testing.T) {
	t.Parallel()
	forEachStep(t, func(t *testing.T, op operation, k int) bool {
		s, c, _, after := op.applied(t)
		var reached atomic.Bool
		c.arm(faults{before: at(k, &reached, func(context.Context, string) error { return errStopped })})
		got, err := op.run(t.Context(), s)
		require.NoError(t, err)
		require.Equal(t, op.want, got)
		c.disarm()
		require.Equal(t, after, dump(t, s.DB()))
		return reached.Load()
	})
}

func TestACtxThatEndsInTheMiddleAppliesAllOrNothing(t *testing.T) {
	t.Parallel()
	forEachStep(t, func(t *testing.T, op operation, k int) bool {
		s, c, before, after := op.applied(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var reached atomic.Bool
		c.arm(faults{before: at(k, &reached, func(context.Context, string) error { cancel(); return nil })})
		_, err := op.run(ctx, s)
		if !reached.Load() {
			require.NoError(t, err)
			return false
		}
		done := err == nil
		if !done {
			require.ErrorIs(t, err, context.Canceled)
		}
		if now := dump(t, s.DB()); errors.Is(err, order.ErrUnknownOutcome) {
			done = slices.Equal(now, after)
			require.True(t, done || slices.Equal(now, before))
		} else if done {
			require.Equal(t, after, now)
		} else {
			require.Equal(t, before, now)
		}
		op.rerun(t, s, c, after, done && !slices.Equal(before, after))
		return true
	})
}

func TestADatabaseThatStaysBusyIsGivenUp(t *testing.T) {
	t.Parallel()
	s, c := setupFaulty(t)
	s.create("o")
	before := dump(t, s.DB())
	var tries atomic.Int64
	c.arm(faults{before: func(_ context.Context, step string) error {
		if step == "commit" {
			tries.Add(1)
			return errStopped
		}
		return nil
	}})
	_, err := s.Close(t.Context(), "o", due)
	require.ErrorIs(t, err, order.ErrBusy)
	require.ErrorIs(t, err, errStopped)
	require.NotErrorIs(t, err, order.ErrUnknownOutcome)
	require.EqualValues(t, 50, tries.Load())

	ctx, cancel := context.WithCancel(t.Context())
	tries.Store(0)
	c.arm(faults{before: func(_ context.Context, step string) error {
		if tries.Add(1) == 3 {
			cancel()
		}
		return errStopped
	}})
	_, err = s.Close(ctx, "o", due)
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, tries.Load(), int64(50))

	c.disarm()
	require.Equal(t, before, dump(t, s.DB()))
}

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
)

var (
	errInjected = errors.New("injected")
	errStopped  = errors.New("injected: stopped by another transaction")
)

// faultyDialect takes errStopped for what a deadlock or a lock is in other databases.
type faultyDialect struct{ sqlstore.Dialect }

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

// trial is an operation to be run on a shop that is prepared for it, and what the tables hold
// before it and after.
type trial struct {
	operation
	s             *shop
	c             *faultConnector
	before, after []string
}

// forEachStep runs test on each step of each operation, until one is beyond the last. It gets the
// number of the step, and says whether the operation came that far.
func forEachStep(t *testing.T, db backend, test func(t *testing.T, tr trial, k int) (reached bool)) {
	for _, op := range operations {
		t.Run(op.name, func(t *testing.T) {
			t.Parallel()
			tr := trial{operation: op}
			tr.s, tr.c = setupFaulty(t, db)
			op.prepare(tr.s)
			got, err := op.run(t.Context(), tr.s)
			require.NoError(t, err)
			require.Equal(t, op.want, got)
			tr.after = dump(t, tr.s)

			for k := 0; ; k++ {
				tr.s.reset()
				op.prepare(tr.s)
				tr.before = dump(t, tr.s)
				if !test(t, tr, k) {
					require.GreaterOrEqual(t, k, 3, "begin, a statement, commit")
					t.Logf("%d steps", k)
					return
				}
				tr.s.check()
			}
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

// rerun runs the operation without faults: it must end in the state after it.
func (tr trial) rerun(t *testing.T, done bool) {
	t.Helper()
	tr.c.disarm()
	got, err := tr.run(t.Context(), tr.s)
	if done {
		require.ErrorIs(t, err, tr.againErr)
		require.Equal(t, tr.again, got)
	} else {
		require.NoError(t, err)
		require.Equal(t, tr.want, got)
	}
	require.Equal(t, tr.after, dump(t, tr.s), "effects once")
}

func TestAStepThatFailsAppliesNothingAndARerunCompletes(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		forEachStep(t, db, func(t *testing.T, tr trial, k int) bool {
			var reached atomic.Bool
			tr.c.arm(faults{before: at(k, &reached, func(context.Context, string) error { return errInjected })})
			_, err := tr.run(t.Context(), tr.s)
			if !reached.Load() {
				require.NoError(t, err)
				return false
			}
			require.ErrorIs(t, err, errInjected)
			require.Equal(t, tr.before, dump(t, tr.s))
			tr.rerun(t, false)
			return true
		})
	})
}

func TestAStepWhoseAnswerIsLostIsFoundOutByARerun(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		forEachStep(t, db, func(t *testing.T, tr trial, k int) bool {
			var reached atomic.Bool
			var lost string
			tr.c.arm(faults{after: at(k, &reached, func(_ context.Context, step string) error {
				lost = step
				return errInjected
			})})
			_, err := tr.run(t.Context(), tr.s)
			if !reached.Load() {
				require.NoError(t, err)
				return false
			}
			require.ErrorIs(t, err, errInjected)
			if lost == "commit" {
				require.ErrorIs(t, err, order.ErrUnknownOutcome)
				require.Equal(t, tr.after, dump(t, tr.s))
			} else {
				require.NotErrorIs(t, err, order.ErrUnknownOutcome)
				require.Equal(t, tr.before, dump(t, tr.s))
			}
			tr.rerun(t, lost == "commit")
			return true
		})
	})
}

func TestATransactionThatOthersStopIsRunAgain(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		forEachStep(t, db, func(t *testing.T, tr trial, k int) bool {
			var reached atomic.Bool
			tr.c.arm(faults{before: at(k, &reached, func(context.Context, string) error { return errStopped })})
			got, err := tr.run(t.Context(), tr.s)
			require.NoError(t, err)
			require.Equal(t, tr.want, got)
			tr.c.disarm()
			require.Equal(t, tr.after, dump(t, tr.s))
			return reached.Load()
		})
	})
}

func TestACtxThatEndsInTheMiddleAppliesAllOrNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		forEachStep(t, db, func(t *testing.T, tr trial, k int) bool {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var reached atomic.Bool
			tr.c.arm(faults{before: at(k, &reached, func(context.Context, string) error { cancel(); return nil })})
			_, err := tr.run(ctx, tr.s)
			if !reached.Load() {
				require.NoError(t, err)
				return false
			}
			done := err == nil
			if !done {
				require.ErrorIs(t, err, context.Canceled)
			}
			if now := dump(t, tr.s); errors.Is(err, order.ErrUnknownOutcome) {
				done = slices.Equal(now, tr.after)
				require.True(t, done || slices.Equal(now, tr.before))
			} else if done {
				require.Equal(t, tr.after, now)
			} else {
				require.Equal(t, tr.before, now)
			}
			tr.rerun(t, done && !slices.Equal(tr.before, tr.after))
			return true
		})
	})
}

func TestADatabaseThatStaysBusyIsGivenUp(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s, c := setupFaulty(t, db)
		s.create("o")
		before := dump(t, s)
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
		require.Equal(t, before, dump(t, s))
	})
}

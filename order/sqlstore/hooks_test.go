package sqlstore_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/internal/logbuffer"
	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/sqlstore"
)

// asking is a shop that asks a provider which says answer, and the numbers it was asked about.
func asking(s *shop, answer func(ctx context.Context, no string) (order.ProviderAnswer, error), edit ...func(*sqlstore.Options)) (*shop, *noted) {
	var asked noted
	o := sqlstore.Options{Ask: func(ctx context.Context, no string) (order.ProviderAnswer, error) {
		asked.add(no)
		return answer(ctx, no)
	}}
	for _, e := range edit {
		e(&o)
	}
	return s.with(o), &asked
}

func askAgainAfter(d time.Duration) func(*sqlstore.Options) {
	return func(o *sqlstore.Options) { o.AskAgainMin, o.AskAgainMax = d, d }
}

func says(a order.ProviderAnswer) func(context.Context, string) (order.ProviderAnswer, error) {
	return func(context.Context, string) (order.ProviderAnswer, error) { return a, nil }
}

type noted struct {
	mu   sync.Mutex
	list []string
}

func (n *noted) add(s string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, s)
}

func (n *noted) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.list...)
}

func TestOnlyWhatTheProviderSaysIsNotPaidIsClosed(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		waits := func(ctx context.Context, _ string) (order.ProviderAnswer, error) {
			<-ctx.Done()
			return order.NotPaid, ctx.Err()
		}
		for name, c := range map[string]struct {
			ask  func(context.Context, string) (order.ProviderAnswer, error)
			held bool
			want sqlstore.Stats

			timeout time.Duration
		}{
			"not paid":     {says(order.NotPaid), false, sqlstore.Stats{Asked: 1, NotPaid: 1}, 0},
			"paid":         {says(order.PaidThere), true, sqlstore.Stats{Asked: 1, PaidThere: 1}, 0},
			"unknown":      {says(order.PaymentUnknown), true, sqlstore.Stats{Asked: 1, Unknown: 1}, 0},
			"nonsense":     {says(77), true, sqlstore.Stats{Asked: 1, Unknown: 1}, 0},
			"does not say": {waits, true, sqlstore.Stats{Asked: 1, AskFailed: 1}, 50 * ms},
			"an error": {func(context.Context, string) (order.ProviderAnswer, error) {
				return order.NotPaid, errors.New("no")
			}, true, sqlstore.Stats{Asked: 1, AskFailed: 1}, 0},
			"a panic": {func(context.Context, string) (order.ProviderAnswer, error) {
				panic("no")
			}, true, sqlstore.Stats{Asked: 1, AskFailed: 1}, 0},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s, asked := asking(setup(t, db), c.ask, func(o *sqlstore.Options) { o.AskTimeout = c.timeout })
				s.create("o", withCoupon("c1"))
				before := dump(t, s)
				r := s.close("o", due)
				require.Equal(t, []string{"o"}, asked.all())
				require.Equal(t, c.want, s.Stats())
				if !c.held {
					require.Equal(t, order.ClosedNow, r.Outcome)
					return
				}
				require.Equal(t, order.HeldBack, r.Outcome)
				require.False(t, r.Done())
				at, ok := r.NotYet()
				require.True(t, ok)
				require.False(t, at.Before(due.Add(5*time.Second)), "it comes again, and not at once")
				require.Equal(t, before, dump(t, s), "nothing was changed")
				require.Equal(t, order.PaidNow, s.pay(payment("p", "o")), "and the money may still come")
			})
		}
	})
}

func TestNobodyIsAskedAboutAnOrderThatCannotBeClosed(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s, asked := asking(setup(t, db), says(order.NotPaid))
		for _, no := range []string{"paid", "abandoned", "closed", "early"} {
			s.create(no)
		}
		s.create("cod", expiring(time.Time{}))
		s.pay(payment("p", "paid"))
		s.abandon("abandoned", t0)
		require.Empty(t, asked.all(), "a user who gives up has decided")
		s.close("closed", due)
		require.Equal(t, []string{"closed"}, asked.all())
		for no, want := range map[string]order.Result{
			"paid": {Outcome: order.WasPaid}, "abandoned": {Outcome: order.ClosedAlready}, "closed": {Outcome: order.ClosedAlready},
			"none": {Outcome: order.NotFound}, "cod": {Outcome: order.NotYetDue},
		} {
			require.Equal(t, want, s.close(no, due), no)
		}
		require.Equal(t, order.Result{Outcome: order.NotYetDue, ExpireAt: due}, s.close("early", due.Add(-ms)))
		require.Equal(t, []string{"closed"}, asked.all())
	})
}

// The pause before the provider is asked again is as long as the order is overdue, within bounds.
func TestThePausesBetweenQuestionsGrowAndAreBounded(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s, _ := asking(setup(t, db), says(order.PaymentUnknown), func(o *sqlstore.Options) {
			o.AskAgainMin, o.AskAgainMax = time.Second, time.Minute
		})
		s.create("o")
		const stopwatch = 10 * time.Second // what the question itself took is added
		for overdue, pause := range map[time.Duration]time.Duration{
			0: time.Second, 500 * ms: time.Second, 20 * time.Second: 20 * time.Second, time.Minute: time.Minute, 24 * time.Hour: time.Minute,
		} {
			now := due.Add(overdue)
			got := s.close("o", now).AskAgain.Sub(now)
			require.GreaterOrEqual(t, got, pause, overdue)
			require.Less(t, got, pause+2*stopwatch, overdue)
		}
	})
}

// A transaction that was open while the provider is asked would keep every other writer waiting, or
// for ever where it is asked to write.
func TestTheProviderIsAskedOutsideOfAnyTransaction(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		plain := setup(t, db)
		s, _ := asking(plain, func(ctx context.Context, no string) (order.ProviderAnswer, error) {
			_, err := plain.Pay(ctx, payment("p", no))
			return order.NotPaid, err // it was wrong, or paid since
		})
		s.create("o")
		require.Equal(t, order.WasPaid, s.close("o", due).Outcome)
		require.Equal(t, [3]int64{98, 0, 2}, s.stock("a"))
	})
}

// The look at the order came just before it was created: it must not be closed without a question.
func TestAnOrderThatAppearsMeanwhileIsNotClosedUnasked(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s, conn := setupFaulty(t, db)
		s, asked := asking(s, says(order.NotPaid))
		s.create("o")
		conn.arm(faults{blind: func(step string) bool { return step == "query SELECT order_no," }})
		require.Equal(t, order.NotFound, s.close("o", due).Outcome)
		conn.disarm()
		require.Empty(t, asked.all())
		require.Equal(t, order.Unpaid, s.status("o"))
	})
}

func TestACtxThatEndsWhileTheProviderIsAskedClosesNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		ctx, cancel := context.WithCancel(t.Context())
		s, _ := asking(setup(t, db), func(context.Context, string) (order.ProviderAnswer, error) {
			cancel()
			return order.NotPaid, nil
		})
		s.create("o")
		_, err := s.Close(ctx, "o", due)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, order.Unpaid, s.status("o"))
		_, err = s.Close(ctx, "o", due)
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestAQuestionThatFailsIsLoggedWithItsOrder(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		var log logbuffer.Buffer
		s, _ := asking(setup(t, db), func(context.Context, string) (order.ProviderAnswer, error) { panic("what?") },
			func(o *sqlstore.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		s.create("o")
		s.close("o", due)
		require.Contains(t, log.String(), "msg=ask_failed order=o")
		require.Contains(t, log.String(), "what?")
		require.Contains(t, log.String(), "hooks_test.go", "and where")
	})
}

// telling is a shop that notes what it is told of.
func telling(s *shop, tell func(no string, reason order.Reason)) (*shop, *noted) {
	var told noted
	return s.with(sqlstore.Options{AfterClose: func(_ context.Context, no string, reason order.Reason) {
		told.add(no + " " + string(reason))
		tell(no, reason)
	}}), &told
}

func TestEachCloseIsToldOnceAndAfterItsCommit(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		plain := setup(t, db)
		s, told := telling(plain, func(no string, _ order.Reason) {
			require.Equal(t, order.Closed, plain.status(no))
			plain.addStock("a", 1) // no transaction is open, or this waits for ever
		})
		for _, no := range []string{"paid", "closed", "abandoned"} {
			s.create(no)
		}
		s.pay(payment("p", "paid"))
		for range 3 {
			s.close("paid", due)
			s.close("closed", due)
			s.abandon("abandoned", due)
			s.close("none", due)
		}
		require.Equal(t, []string{"closed timeout", "abandoned abandoned"}, told.all())
		require.EqualValues(t, 2, s.Stats().Told)
	})
}

func TestWhatWasNotClosedIsNotTold(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s, conn := setupFaulty(t, db)
		s, told := telling(s, func(string, order.Reason) {})
		s.create("o")
		conn.arm(faults{before: func(_ context.Context, step string) error {
			if step == "commit" {
				return errInjected
			}
			return nil
		}})
		_, err := s.Close(t.Context(), "o", due)
		require.ErrorIs(t, err, order.ErrUnknownOutcome)
		conn.disarm()
		require.Empty(t, told.all())
		s.close("o", due)
		require.Equal(t, []string{"o timeout"}, told.all())
	})
}

func TestAPanicOfAfterCloseIsCountedAndLogged(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		var log logbuffer.Buffer
		s := setup(t, db).with(sqlstore.Options{
			AfterClose: func(context.Context, string, order.Reason) { panic("what?") },
			Logger:     slog.New(slog.NewTextHandler(&log, nil)),
		})
		s.create("o")
		require.Equal(t, order.ClosedNow, s.close("o", due).Outcome)
		require.Equal(t, sqlstore.Stats{Told: 1, TellPanicked: 1}, s.Stats())
		require.Contains(t, log.String(), "msg=after_close_panicked order=o panic=what?")
	})
}

func TestTheOptionsOfTheQuestionsAreChecked(t *testing.T) {
	t.Parallel()
	_, err := sqlstore.NewWith(nil, nil, sqlstore.Options{AskTimeout: -1, AskAgainMin: time.Microsecond, AskAgainMax: -time.Hour})
	require.ErrorIs(t, err, order.ErrInvalid)
	for _, says := range []string{"Options.AskTimeout is -1ns: give 1ms or more", "Options.AskAgainMin is 1µs: give", "Options.AskAgainMax is -1h0m0s: give"} {
		require.ErrorContains(t, err, says)
	}
	_, err = sqlstore.NewWith(nil, nil, sqlstore.Options{AskAgainMax: time.Second})
	require.ErrorContains(t, err, "Options.AskAgainMax is 1s: give AskAgainMin (5s) or more")
}

package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/sqlstore"
)

// with is the same shop with options.
func (s *shop) with(o sqlstore.Options) *shop {
	s.t.Helper()
	store, err := sqlstore.NewWith(s.DB(), s.db.dialect, o)
	require.NoError(s.t, err)
	other := *s
	other.Store = store
	*s.kinds = o.Outbox
	return &other
}

func (s *shop) unpaid(user string) int {
	s.t.Helper()
	return s.count(`SELECT COALESCE(SUM(unpaid), 0) FROM user_unpaid WHERE user_id = '` + user + `'`)
}

func TestTheCountOfUnpaidOrdersFollowsThem(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s := setup(t, db)
		require.Zero(t, s.unpaid("u"))
		for i, no := range []string{"o1", "o2", "o3", "o4"} {
			s.create(no)
			require.Equal(t, i+1, s.unpaid("u"))
		}
		s.pay(payment("p", "o1"))
		require.Equal(t, 3, s.unpaid("u"))
		s.pay(payment("p", "o1"))
		s.pay(payment("q", "o1"))
		s.abandon("o1", due)
		s.close("o1", due)
		require.Equal(t, 3, s.unpaid("u"), "what changes no order changes no count")
		s.close("o2", due)
		s.close("o2", due)
		require.Equal(t, 2, s.unpaid("u"))
		s.abandon("o3", t0)
		require.Equal(t, 1, s.unpaid("u"))
		s.pay(payment("late", "o3"))
		require.Equal(t, 1, s.unpaid("u"))
	})
}

func TestOneUnpaidOrderMoreThanTheLimitIsRefused(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s := setup(t, db).with(sqlstore.Options{MaxUnpaid: 2})
		s.create("o1")
		s.create("o2", expiring(time.Time{}))
		before := dump(t, s)
		err := s.Create(t.Context(), newOrder("o3", withCoupon("c1")), t0)
		require.ErrorIs(t, err, order.ErrTooManyUnpaid)
		require.ErrorContains(t, err, `user "u" has 2, the limit is 2`)
		require.Equal(t, before, dump(t, s), "nothing was changed")
		require.ErrorIs(t, s.Create(t.Context(), newOrder("o2"), t0), order.ErrDuplicate, "which says that it stands")

		s.create("other", func(o *order.Order) { o.UserID = "v" })
		for _, leave := range []func(){
			func() { s.pay(payment("p", "o1")) },
			func() { s.abandon("o2", t0) },
		} {
			leave()
			s.create(fmt.Sprint("again", s.count(`SELECT COUNT(*) FROM orders`)))
		}
		require.ErrorIs(t, s.Create(t.Context(), newOrder("o5"), t0), order.ErrTooManyUnpaid)
	})
}

// A limit that was lowered refuses new orders and leaves the old ones alone.
func TestALimitBelowWhatStandsRefusesAndCloses(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s := setup(t, db)
		for _, no := range []string{"o1", "o2", "o3"} {
			s.create(no)
		}
		s = s.with(sqlstore.Options{MaxUnpaid: 1})
		require.ErrorContains(t, s.Create(t.Context(), newOrder("o4"), t0), `user "u" has 3, the limit is 1`)
		require.Equal(t, order.ClosedNow, s.close("o1", due).Outcome)
	})
}

func TestOrdersPlacedAtOnceKeepTheLimit(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		stores, _ := setupRace(t, db, 1)
		stores[0].addStock("a", 1000)
		stores[0].addStock("b", 1000)
		var placed atomic.Int64
		var wg sync.WaitGroup
		for i := range 40 {
			s := stores[i%2].with(sqlstore.Options{MaxUnpaid: 7})
			wg.Go(func() {
				o := newOrder(fmt.Sprint("n", i), func(o *order.Order) { o.UserID = "new" })
				switch err := s.Create(context.Background(), o, t0); {
				case err == nil:
					placed.Add(1)
				case !errors.Is(err, order.ErrTooManyUnpaid):
					t.Errorf("create %s: %v", o.No, err)
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 7, placed.Load())
		require.Equal(t, 7, stores[0].unpaid("new"))
	})
}

// Something outside the store spoiled the count: the stock comes back all the same.
func TestACountThatIsWrongHoldsUpNoClose(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s := unchecked(t, db)
		s.create("o")
		s.create("p")
		s.create("q")
		s.exec(`UPDATE user_unpaid SET unpaid = 0`)
		require.Equal(t, order.ClosedNow, s.close("o", due).Outcome)
		require.Zero(t, s.unpaid("u"))
		s.exec(`DELETE FROM user_unpaid`)
		require.Equal(t, order.ClosedNow, s.abandon("p", due).Outcome)
		require.Equal(t, order.PaidNow, s.pay(payment("p", "q")))
		require.Empty(t, s.violations())
	})
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	_, err := sqlstore.NewWith(nil, nil, sqlstore.Options{MaxUnpaid: -1})
	require.ErrorIs(t, err, order.ErrInvalid)
	require.ErrorContains(t, err, "Options.MaxUnpaid is -1: give 0 to")
}

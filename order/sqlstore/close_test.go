package sqlstore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/order"
)

func TestCloseGivesStockAndCouponBack(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s := setup(t, db)
		s.create("o", withCoupon("c1"))
		require.Equal(t, [3]int64{98, 2, 0}, s.stock("a"))
		require.Equal(t, [3]int64{97, 3, 0}, s.stock("b"))
		require.Equal(t, "frozen", s.coupon("c1"))

		require.Equal(t, order.Result{Outcome: order.ClosedNow}, s.close("o", due))
		require.Equal(t, order.Closed, s.status("o"))
		require.Equal(t, [3]int64{100, 0, 0}, s.stock("a"))
		require.Equal(t, [3]int64{100, 0, 0}, s.stock("b"))
		require.Equal(t, "unused", s.coupon("c1"))
		require.Equal(t, due.UnixMilli(), int64(s.count(`SELECT closed_at FROM orders`)))
		require.Equal(t, "timeout", s.text(`SELECT close_reason FROM orders`))

		s.create("again", withCoupon("c1")) // the coupon is usable again
	})
}

// Case 128: the second cancel raised the stock again.
func TestClosedThreeTimesTheStockComesBackOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s := setup(t, db)
		s.create("o", withCoupon("c1"))
		require.Equal(t, order.ClosedNow, s.close("o", due).Outcome)
		require.Equal(t, order.ClosedAlready, s.close("o", due).Outcome)
		require.Equal(t, order.ClosedAlready, s.close("o", due.Add(time.Hour)).Outcome)
		require.Equal(t, [3]int64{100, 0, 0}, s.stock("a"))
		require.Equal(t, due.UnixMilli(), int64(s.count(`SELECT closed_at FROM orders`)), "the first close stands")
	})
}

func TestTheClosedOrdersCouponOfAnotherOrderIsLeftAlone(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s := setup(t, db)
		s.create("o", withCoupon("c1"))
		s.close("o", due)
		s.create("p", withCoupon("c1"), expiring(due.Add(time.Hour)))
		s.close("o", due.Add(time.Minute))
		require.Equal(t, "frozen", s.coupon("c1"))
	})
}

// Case 129: the timer of a paid order still fires.
func TestAPaidOrderComingDueIsLeftAlone(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s := setup(t, db)
		s.create("o", withCoupon("c1"))
		require.Equal(t, order.PaidNow, s.pay(payment("p", "o")))
		r := s.close("o", due)
		require.Equal(t, order.WasPaid, r.Outcome)
		require.True(t, r.Done())
		require.Equal(t, [3]int64{98, 0, 2}, s.stock("a"))
		require.Equal(t, "used", s.coupon("c1"))
		require.Equal(t, order.Paid, s.status("o"))
	})
}

// Case 131: cash on delivery must not close.
func TestAnOrderWithoutExpiryNeverCloses(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s := setup(t, db)
		s.create("cod", expiring(time.Time{}))
		r := s.close("cod", time.UnixMilli(253402300799999))
		require.Equal(t, order.Result{Outcome: order.NotYetDue}, r)
		require.True(t, r.Done(), "there is nothing to come again for")
		require.Equal(t, order.Unpaid, s.status("cod"))
		ids, _, err := s.Unpaid(t.Context(), "", 10)
		require.NoError(t, err)
		require.Empty(t, ids, "and it is not scheduled")
		require.Equal(t, order.PaidNow, s.pay(payment("p", "cod")))
	})
}

func TestCloseIsNotEarlyByAMillisecondAndNotLateByOne(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		for _, c := range []struct {
			name     string
			expireAt time.Time
			dueMS    int64
		}{
			{"whole millisecond", due, due.UnixMilli()},
			{"one nanosecond more: rounded up", due.Add(1), due.UnixMilli() + 1},
			{"one nanosecond less: rounded up", due.Add(-1), due.UnixMilli()},
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				s := setup(t, db)
				s.create("o", expiring(c.expireAt))
				at := time.UnixMilli(c.dueMS)
				r := s.close("o", at.Add(-1)) // the last nanosecond of the millisecond before
				require.Equal(t, order.Result{Outcome: order.NotYetDue, ExpireAt: at}, r)
				require.False(t, r.Done())
				require.Equal(t, order.NotYetDue, s.close("o", at.Add(-ms)).Outcome)
				require.Equal(t, [3]int64{98, 2, 0}, s.stock("a"))
				require.Equal(t, order.ClosedNow, s.close("o", at).Outcome)
			})
		}
	})
}

func TestAnExtendedOrderIsNotYetDueAndNamesTheNewTime(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s := setup(t, db)
		s.create("o")
		later := due.Add(10 * time.Minute)
		require.NoError(t, s.Extend(t.Context(), "o", later))
		require.NoError(t, s.Extend(t.Context(), "o", later), "twice is once")
		at, ok := s.close("o", due).NotYet()
		require.True(t, ok)
		require.Equal(t, later, at)
		require.Equal(t, order.ClosedNow, s.close("o", later).Outcome)
		require.ErrorIs(t, s.Extend(t.Context(), "o", later.Add(time.Hour)), order.ErrNotUnpaid)
		require.ErrorIs(t, s.Extend(t.Context(), "none", later), order.ErrUnknownOrder)
		require.ErrorIs(t, s.Extend(t.Context(), "o", time.Time{}), order.ErrInvalid)
	})
}

func TestAnUnknownOrderIsNotFound(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s := setup(t, db)
		r := s.close("none", due)
		require.Equal(t, order.Result{Outcome: order.NotFound}, r)
		require.False(t, r.Done())
		_, _, err := s.Find(t.Context(), "none")
		require.ErrorIs(t, err, order.ErrUnknownOrder)
	})
}

func TestTheCouponOfAClosedOrderExpiresByItsOwnValidity(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		for name, c := range map[string]struct {
			validUntil time.Time
			want       string
		}{
			"valid for a millisecond more":   {due.Add(ms), "unused"},
			"over in this very millisecond":  {due, "expired"},
			"over since before the order is": {due.Add(-time.Minute), "expired"},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := setup(t, db)
				require.NoError(t, s.AddCoupon(t.Context(), "c", "u", c.validUntil))
				s.create("o", withCoupon("c"))
				require.Equal(t, order.ClosedNow, s.close("o", due).Outcome)
				require.Equal(t, c.want, s.coupon("c"))
			})
		}
	})
}

func TestACloseWithoutASaneClockIsRefused(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s := setup(t, db)
		s.create("o")
		for _, now := range []time.Time{{}, time.UnixMilli(-1), time.UnixMilli(253402300800000)} {
			_, err := s.Close(t.Context(), "o", now)
			require.ErrorIs(t, err, order.ErrInvalid)
		}
	})
}

// PostgreSQL refuses such a text instead of not finding it: one in a batch would have all of it closed
// one by one.
func TestANumberThatNoOrderCanHaveIsThatOfNoOrder(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s := setup(t, db)
		s.create("o")
		s.create("p")
		unfit := []string{"", "a\x00b", "\xff", strings.Repeat("n", 257)}
		for _, no := range unfit {
			require.Equal(t, order.NotFound, s.close(no, due).Outcome)
			res, err := s.Abandon(t.Context(), no, t0)
			require.NoError(t, err)
			require.Equal(t, order.NotFound, res.Outcome)
			require.ErrorIs(t, s.Extend(t.Context(), no, due), order.ErrUnknownOrder)
			_, _, err = s.Find(t.Context(), no)
			require.ErrorIs(t, err, order.ErrUnknownOrder)
		}
		results, errs := s.CloseMany(t.Context(), append(unfit, "o", "p"), due)
		require.Equal(t, make([]error, 6), errs)
		require.Equal(t, "[unknown order unknown order unknown order unknown order closed closed]", fmt.Sprint(results))
		require.Zero(t, s.Stats().BatchesFailed)
	})
}

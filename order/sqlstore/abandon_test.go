package sqlstore_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/order"
)

func TestAbandonGivesStockAndCouponBackBeforeTheOrderExpires(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s := setup(t, db)
		s.create("o", withCoupon("c1"))
		require.Equal(t, order.ClosedNow, s.abandon("o", t0.Add(time.Minute)).Outcome)
		require.Equal(t, [3]int64{100, 0, 0}, s.stock("a"))
		require.Equal(t, [3]int64{100, 0, 0}, s.stock("b"))
		require.Equal(t, "unused", s.coupon("c1"))
		require.Equal(t, "abandoned", s.text(`SELECT close_reason FROM orders`))
		require.Equal(t, "abandoned", s.text(`SELECT reason FROM close_log`))
		require.Equal(t, t0.Add(time.Minute).UnixMilli(), int64(s.count(`SELECT closed_at FROM orders`)))

		require.Equal(t, order.ClosedAlready, s.abandon("o", due).Outcome, "twice is once")
		require.Equal(t, order.ClosedAlready, s.close("o", due).Outcome, "its task finds nothing to do")
		require.Equal(t, [3]int64{100, 0, 0}, s.stock("a"))
	})
}

func TestAnOrderThatNeverExpiresCanBeAbandoned(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s := setup(t, db)
		s.create("cod", expiring(time.Time{}))
		require.Equal(t, order.ClosedNow, s.abandon("cod", t0).Outcome)
		require.Equal(t, [3]int64{100, 0, 0}, s.stock("a"))
	})
}

func TestAnAbandonWithoutASaneClockIsRefused(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s := setup(t, db)
		s.create("o")
		_, err := s.Abandon(t.Context(), "o", time.Time{})
		require.ErrorIs(t, err, order.ErrInvalid)
		require.ErrorContains(t, err, `abandon order "o"`)
	})
}

// The user gives up, pays, and the timer fires, all at once: one of them wins.
func TestAbandonPayAndCloseRaceAndExactlyOneWins(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		stores, nos := setupRace(t, db, races()/5)
		won := map[order.Status]int{}
		for _, no := range nos {
			var wg sync.WaitGroup
			var mu sync.Mutex
			closed, paid := 0, 0
			note := func(c order.Result, p order.PayOutcome, err error) {
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Errorf("%s: %v", no, err)
				}
				if c.Outcome == order.ClosedNow {
					closed++
				}
				if p == order.PaidNow {
					paid++
				}
			}
			ctx := context.Background()
			wg.Go(func() { r, err := stores[0].Abandon(ctx, no, due); note(r, 0, err) })
			wg.Go(func() { r, err := stores[1].Abandon(ctx, no, due); note(r, 0, err) })
			wg.Go(func() { r, err := stores[1].Close(ctx, no, due); note(r, 0, err) })
			wg.Go(func() { p, err := stores[0].Pay(ctx, payment("p"+no, no)); note(order.Result{}, p, err) })
			wg.Wait()
			require.Equal(t, 1, closed+paid, no)
			status := stores[0].status(no)
			require.Equal(t, paid == 1, status == order.Paid, no)
			won[status]++
		}
		t.Logf("won: %v", won)
		require.NotZero(t, won[order.Closed])
	})
}

func (s *shop) abandon(no string, now time.Time) order.Result {
	s.t.Helper()
	r, err := s.Abandon(s.t.Context(), no, now)
	require.NoError(s.t, err)
	return r
}

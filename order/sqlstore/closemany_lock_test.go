package sqlstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/order"
)

// Another transaction keeps one order's row locked: the others of its batch do not wait for it.
func TestAnOrderThatIsLockedHoldsUpNoOtherOfItsBatch(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db backend) {
		s, _, other := setupImpatient(t, db)
		for _, no := range []string{"o1", "o2", "o3"} {
			s.create(no)
		}
		tx, err := other.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		_, err = tx.ExecContext(t.Context(), `UPDATE orders SET amount = amount + 1 WHERE order_no = 'o2'`)
		require.NoError(t, err)

		answer := make(chan []order.Result, 1)
		go func() {
			results, errs := s.CloseMany(context.Background(), []string{"o1", "o2", "o3"}, due)
			for _, err := range errs {
				if err != nil {
					t.Error(err)
				}
			}
			answer <- results
		}()
		eventually(t, "the others are closed while it is locked", func() bool {
			return s.count(`SELECT COUNT(*) FROM orders WHERE status = 'closed'`) == 2
		})
		require.NoError(t, tx.Rollback())
		require.Equal(t, []order.Result{{Outcome: order.ClosedNow}, {Outcome: order.ClosedNow}, {Outcome: order.ClosedNow}}, <-answer)
		require.Zero(t, s.Stats().BatchesFailed)
	})
}

// A transaction that nobody ends keeps the row of one user locked: her order is not closed, and the
// others are, behind it in the order of numbers too.
func TestAUserWhoStaysLockedHoldsUpNoOrderOfOthers(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db backend) {
		s, _, other := setupImpatient(t, db)
		for _, no := range []string{"o1", "o2", "o3"} {
			s.create(no, func(o *order.Order) { o.UserID = "user of " + no })
		}
		tx, err := other.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		_, err = tx.ExecContext(t.Context(), `UPDATE user_unpaid SET unpaid = unpaid + 1 WHERE user_id = 'user of o1'`)
		require.NoError(t, err)

		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // a handler's
		defer cancel()
		results, errs := s.CloseMany(ctx, []string{"o1", "o2", "o3"}, due)
		require.NoError(t, ctx.Err())
		require.ErrorIs(t, errs[0], order.ErrBusy)
		require.Equal(t, []error{nil, nil}, errs[1:])
		require.Equal(t, []order.Result{{}, {Outcome: order.ClosedNow}, {Outcome: order.ClosedNow}}, results)
		require.NoError(t, tx.Rollback())
		require.Equal(t, order.ClosedNow, s.close("o1", due).Outcome)
	})
}

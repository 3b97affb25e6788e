package sqlstore_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/executor"
	"github.com/orderwheel/orderwheel/internal/redistest"
	"github.com/orderwheel/orderwheel/order"
)

// calls notes, outside the engine and the store, when the handler was entered for which order.
type calls struct {
	mu      sync.Mutex
	entered map[string][]time.Time
}

func (c *calls) wrap(h executor.Handler) executor.Handler {
	return func(ctx context.Context, task executor.Task) error {
		c.mu.Lock()
		c.entered[task.ID] = append(c.entered[task.ID], time.Now())
		c.mu.Unlock()
		return h(ctx, task)
	}
}

// startEngine runs one instance until the returned function stops it.
func startEngine(t *testing.T, rdb redis.UniversalClient, s *shop, c *calls) (*orderwheel.Engine, func()) {
	t.Helper()
	eng, err := orderwheel.New(orderwheel.Config{
		Redis: rdb, Handler: c.wrap(orderwheel.Closing(s.Store)), Source: s.Store,
	})
	require.NoError(t, err)
	require.NoError(t, eng.Start(t.Context()))
	stop := sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), hang)
		defer cancel()
		require.NoError(t, eng.Stop(ctx))
	})
	t.Cleanup(stop)
	return eng, stop
}

// Customers pay within a millisecond of the deadline, before or after it, while two instances of the
// engine close: each order is paid or closed, money for a closed one goes back once, and no unit and
// no coupon is lost or given twice.
func TestPaymentsRaceTwoEnginesAtTheDeadline(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		server := redistest.Start(t)
		dsn := db.place(t)
		noted := &calls{entered: map[string][]time.Time{}}
		var shops [2]*shop
		var engines [2]*orderwheel.Engine
		var stops [2]func()
		for i := range shops {
			shops[i] = newShop(t, db, db.opened(t, dsn))
			engines[i], stops[i] = startEngine(t, server.Client(t), shops[i], noted)
		}

		// One falls due every other millisecond, so that few are decided by how long they wait for others.
		first := time.Now().Add(2 * time.Second).Truncate(time.Millisecond)
		dueOf := func(i int) time.Time { return first.Add(time.Duration(i) * 2 * ms) }
		nos := shops[0].createDue("o", races(), dueOf)
		dues := make([]orderwheel.Due, len(nos))
		for i, no := range nos {
			dues[i] = orderwheel.Due{ID: no, At: dueOf(i)}
		}
		for _, eng := range engines { // both have all of them in their wheels
			require.NoError(t, eng.ScheduleMany(t.Context(), dues))
		}

		told := make([]order.PayOutcome, len(nos))
		var wg sync.WaitGroup
		rnd := newRand(t)
		for i, no := range nos {
			at := dueOf(i).Add(time.Duration(rnd.Int64N(int64(2*ms))) - ms)
			wg.Go(func() {
				time.Sleep(time.Until(at))
				out, err := shops[i%2].Pay(context.Background(), order.Payment{
					ID: "p-" + no, OrderNo: no, Amount: 500, At: time.Now(),
				})
				if err != nil {
					t.Errorf("pay %s: %v", no, err)
				}
				told[i] = out
			})
		}
		wg.Wait()
		require.Eventually(t, func() bool { // the engines have found what was paid as well
			d, err := engines[0].Depth(t.Context())
			return err == nil && d.Due == 0 && d.Running == 0
		}, hang, 10*ms)
		for _, stop := range stops {
			stop()
		}
		audit(t, shops[0], noted, nos, dueOf, told)
	})
}

// audit judges a run by the tables, the answers to the payers and the notes of the calls.
func audit(t *testing.T, s *shop, noted *calls, nos []string, dueOf func(int) time.Time, told []order.PayOutcome) {
	t.Helper()
	s.check()
	type state struct {
		status  order.Status
		refunds int
	}
	states := map[string]state{}
	rows, err := s.DB().QueryContext(t.Context(), `
		SELECT o.order_no, o.status, COUNT(r.payment_id) FROM orders o
		LEFT JOIN refunds r ON r.order_no = o.order_no GROUP BY o.order_no, o.status`)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var no string
		var st state
		require.NoError(t, rows.Scan(&no, &st.status, &st.refunds))
		states[no] = st
	}
	require.NoError(t, rows.Err())

	won := map[order.PayOutcome]int{}
	repeated := 0
	for i, no := range nos {
		won[told[i]]++
		want := map[order.PayOutcome]state{order.PaidNow: {order.Paid, 0}, order.Refunded: {order.Closed, 1}}[told[i]]
		require.Equal(t, want, states[no], "%s, whose payer was told %v", no, told[i])
		for _, at := range noted.entered[no] {
			require.False(t, at.Before(dueOf(i)), "%s was fired at %v, due %v", no, at, dueOf(i))
		}
		require.NotEmpty(t, noted.entered[no], no)
		repeated += len(noted.entered[no]) - 1
	}
	n := int64(len(nos))
	require.Equal(t, [3]int64{2 * int64(won[order.Refunded]), 0, 2 * int64(won[order.PaidNow])}, s.stock("a"))
	require.Equal(t, 2*n, s.initial["a"])
	require.Zero(t, s.count(`SELECT COUNT(*) FROM user_coupons WHERE status = 'frozen'`))
	t.Logf("%d paid, %d closed, %d calls repeated", won[order.PaidNow], won[order.Refunded], repeated)
	require.NotZero(t, won[order.PaidNow])
	require.NotZero(t, won[order.Refunded])
}

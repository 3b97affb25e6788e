package sqlstore_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/executor"
	"github.com/orderwheel/orderwheel/internal/redistest"
	"github.com/orderwheel/orderwheel/order"
)

// runEngine starts an engine whose tasks run under claims alone: on a busy machine Redis may be
// taken for absent.
func runEngine(t *testing.T, rdb *redis.Client, c orderwheel.Config) *orderwheel.Engine {
	t.Helper()
	c.Redis, c.RequireClaim = rdb, true
	eng, err := orderwheel.New(c)
	require.NoError(t, err)
	require.NoError(t, eng.Start(t.Context()))
	t.Cleanup(func() { stopEngine(t, eng) })
	return eng
}

func stopEngine(t *testing.T, eng *orderwheel.Engine) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(t, eng.Stop(ctx))
}

// eventually waits for what must happen; the bound is for a hang.
func eventually(t *testing.T, what string, happened func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !happened(); time.Sleep(5 * ms) {
		require.True(t, time.Now().Before(end), "%s has not happened", what)
	}
}

func (s *shop) stillUnpaid() int {
	return s.count(`SELECT COUNT(*) FROM orders WHERE status = 'unpaid'`)
}

// meeting has the three closes of each order begin together.
type meeting struct {
	mu    sync.Mutex
	came  map[string][]executor.Source
	opens map[string]chan struct{}
}

func newMeeting() *meeting {
	return &meeting{came: map[string][]executor.Source{}, opens: map[string]chan struct{}{}}
}

// come waits until all three have come for the order.
func (m *meeting) come(ctx context.Context, t executor.Task) error {
	m.mu.Lock()
	open := m.opens[t.ID]
	if open == nil {
		open = make(chan struct{})
		m.opens[t.ID] = open
	}
	m.came[t.ID] = append(m.came[t.ID], t.Source)
	if len(m.came[t.ID]) == 3 {
		close(open)
	}
	m.mu.Unlock()
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// first are what brought the three that met.
func (m *meeting) first(no string) []executor.Source {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.came[no][:3]
}

// Three engines that know nothing of each other's claims: the wheel of one fires an order, the
// sweep of the next finds it, the reconciler of the third brings it back, and all three close it at
// the same moment, in waves of a hundred orders.
func TestFiredSweptAndReconciledAtOnceAnOrderGivesBackOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		const wave = 100
		s := setup(t, db)
		rdb := redistest.Start(t).Client(t)
		m := newMeeting()
		var mu sync.Mutex
		outcomes := map[string][]order.CloseOutcome{}
		config := func(namespace string, c orderwheel.Config) orderwheel.Config {
			c.Namespace, c.Workers, c.HandlerTimeout = namespace, wave, 5*time.Minute
			c.Handler = func(ctx context.Context, task executor.Task) error {
				if err := m.come(ctx, task); err != nil {
					return err
				}
				r, err := s.Close(ctx, task.ID, task.Now)
				if err != nil {
					t.Errorf("close %s: %v", task.ID, err)
				}
				mu.Lock()
				defer mu.Unlock()
				outcomes[task.ID] = append(outcomes[task.ID], r.Outcome)
				return err
			}
			return c
		}
		wheel := runEngine(t, rdb, config("wheel", orderwheel.Config{Grace: time.Hour}))
		runEngine(t, rdb, config("sweep", orderwheel.Config{Grace: ms, SweepEvery: 5 * ms}))
		runEngine(t, rdb, config("reconcile", orderwheel.Config{Grace: time.Hour, Source: s.Store, ReconcileEvery: time.Second}))

		for w := range races() / wave {
			expireAt := time.UnixMilli(time.Now().UnixMilli()) // what was due before the engines began is not the sweep's
			nos := s.createDue(fmt.Sprintf("w%03d-", w), wave, func(int) time.Time { return expireAt })
			var dues []orderwheel.Due
			var members []redis.Z // as another instance has written them, which is gone
			for _, no := range nos {
				dues = append(dues, orderwheel.Due{ID: no, At: expireAt})
				members = append(members, redis.Z{Score: float64(expireAt.UnixMilli()), Member: no})
			}
			require.NoError(t, wheel.ScheduleMany(t.Context(), dues))
			require.NoError(t, rdb.ZAdd(t.Context(), "{sweep:0}:due", members...).Err())
			eventually(t, "all orders closed by all three", func() bool {
				mu.Lock()
				defer mu.Unlock()
				return !slices.ContainsFunc(nos, func(no string) bool { return len(outcomes[no]) < 3 })
			})
			mu.Lock()
			for _, no := range nos { // a page that the reconciler has read before the close may bring an order back once more
				count := map[order.CloseOutcome]int{}
				for _, o := range outcomes[no] {
					count[o]++
				}
				require.Equal(t, map[order.CloseOutcome]int{order.ClosedNow: 1, order.ClosedAlready: len(outcomes[no]) - 1}, count, no)
				require.ElementsMatch(t, []executor.Source{executor.FromWheel, executor.FromSweep, executor.FromReconcile}, m.first(no), no)
			}
			mu.Unlock()
			n := int64((w + 1) * wave)
			require.Equal(t, [3]int64{100 + 2*n, 0, 0}, s.stock("a"))
			require.Equal(t, [3]int64{100 + 3*n, 0, 0}, s.stock("b"))
		}
		require.Zero(t, s.count(`SELECT COUNT(*) FROM user_coupons WHERE status = 'frozen'`))
		require.Equal(t, races()/2, s.count(`SELECT COUNT(*) FROM user_coupons WHERE status IN ('unused', 'expired') AND coupon_id <> 'c1'`))
	})
}

// Redis has lost everything, and the app starts again: what the order database has is enough.
func TestFlushedAndRestartedEveryOrderClosesAndNoneEarly(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		const n = 1000
		s := setup(t, db)
		rdb := redistest.Start(t).Client(t)
		var early atomic.Int64
		expireAt := time.UnixMilli(time.Now().Add(4 * time.Second).UnixMilli())
		config := orderwheel.Config{
			Source: s.Store, ReconcileEvery: time.Hour, // the one round of Start
			BatchHandler: func(ctx context.Context, tasks []executor.Task) []error {
				for _, task := range tasks {
					if time.Now().Before(task.Due) || task.Now.Before(task.Due) || !task.Due.Equal(due) && !task.Due.Equal(expireAt) {
						early.Add(1)
					}
				}
				return orderwheel.ClosingMany(s.Store)(ctx, tasks)
			},
		}
		var dues []orderwheel.Due
		for _, no := range s.createMany("later", n/2) {
			dues = append(dues, orderwheel.Due{ID: no, At: expireAt})
		}
		s.exec(fmt.Sprintf(`UPDATE orders SET expire_at = %d`, expireAt.UnixMilli()))
		eng := runEngine(t, rdb, config)
		require.NoError(t, eng.ScheduleMany(t.Context(), dues))
		stopEngine(t, eng)
		s.createMany("missed", n/2) // and these came due while the app was down
		require.NoError(t, rdb.FlushAll(t.Context()).Err())

		eng = runEngine(t, rdb, config)
		eventually(t, "every order closed", func() bool { return s.stillUnpaid() == 0 })
		require.Zero(t, early.Load())
		require.EqualValues(t, n, eng.Stats().Recovery.ReconcileFound, "within one reconcile")
		require.Zero(t, s.count(fmt.Sprintf(`SELECT COUNT(*) FROM orders WHERE order_no LIKE 'later%%' AND closed_at < %d`, expireAt.UnixMilli())))
		require.Equal(t, [3]int64{100 + 2*n, 0, 0}, s.stock("a"))
	})
}

// Case 133: a scan closes up to one period late. Here there is no scan, and the period of the sweep
// of Redis is longer than the test: every order is closed all the same.
func TestNoOrderWaitsForAScan(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s := setup(t, db)
		rdb := redistest.Start(t).Client(t)
		eng := runEngine(t, rdb, orderwheel.Config{
			BatchHandler: orderwheel.ClosingMany(s.Store), SweepEvery: time.Hour,
		})
		expireAt := time.Now().Add(time.Second)
		var dues []orderwheel.Due
		for _, no := range s.createMany("o", races()) {
			dues = append(dues, orderwheel.Due{ID: no, At: expireAt})
		}
		s.exec(fmt.Sprintf(`UPDATE orders SET expire_at = %d`, order.CeilMS(expireAt)))
		require.NoError(t, eng.ScheduleMany(t.Context(), dues))
		eventually(t, "every order closed", func() bool { return s.stillUnpaid() == 0 })
		require.Zero(t, eng.Stats().Recovery.Found)
	})
}

// What the payment provider holds back comes again, as often as it takes, and is closed or paid in
// the end; it costs no attempt.
func TestWhatTheProviderHoldsBackComesAgain(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		var asked atomic.Int64
		s, _ := asking(setup(t, db), func(context.Context, string) (order.ProviderAnswer, error) {
			if asked.Add(1) <= 5 {
				return order.PaymentUnknown, nil
			}
			return order.NotPaid, nil
		}, askAgainAfter(ms))
		s.create("o")
		eng := runEngine(t, redistest.Start(t).Client(t), orderwheel.Config{
			Handler: orderwheel.Closing(s.Store), Retry: orderwheel.Retry{Attempts: 2},
		})
		require.NoError(t, eng.Schedule(t.Context(), "o", due))
		eventually(t, "the close", func() bool { return s.stillUnpaid() == 0 })
		eventually(t, "the ack", func() bool { return eng.Stats().Executor.Done == 1 })
		stats := eng.Stats().Executor
		require.Zero(t, stats.Failed)
		require.EqualValues(t, 5, stats.Postponed)
		require.EqualValues(t, 5, s.Stats().Unknown)
		require.EqualValues(t, 1, s.Stats().NotPaid)
	})
}

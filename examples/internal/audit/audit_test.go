package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/executor"
)

var soundReport = Report{Orders: 4, Paid: 1, Closed: 2, Open: 1, Refunds: 1, By: By{Wheel: 2}}

func TestASoundRunHasNoFaultButItsOpenOrders(t *testing.T) {
	t.Parallel()
	s := sound(t)
	require.Equal(t, soundReport, s.report())
	require.Equal(t, soundReport, s.report(), "a report changes nothing")
	require.Equal(t, []Check{{"open", 1, "orders neither paid nor closed"}}, s.report().Faults())
}

func TestEachPlantedViolationIsReportedAndNothingElse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		plant func(*shop)
		want  func(*Report)
	}{
		"an order stays open": {
			func(s *shop) { s.create("more", time.Now().Add(-time.Second), "") },
			func(r *Report) { r.Orders++; r.Open++ },
		},
		"a closed order keeps its stock": {
			func(s *shop) {
				s.sql(`UPDATE sku_stock SET stock = stock - 2, lock_stock = lock_stock + 2 WHERE sku_id = 'apple'`)
			},
			func(r *Report) { r.StockLocked = 2 },
		},
		"locked stock is released and not given back": {
			func(s *shop) { s.sql(`UPDATE sku_stock SET stock = stock - 3 WHERE sku_id = 'pear'`) },
			func(r *Report) { r.StockMissing = 3 },
		},
		"a sku vanishes": {
			func(s *shop) { s.sql(`PRAGMA foreign_keys = off; DELETE FROM sku_stock WHERE sku_id = 'pear'`) },
			func(r *Report) { r.StockMissing = 100 - 3 },
		},
		"a closed order keeps its coupon": {
			func(s *shop) {
				s.sql(`UPDATE user_coupons SET status = 'frozen', order_no = 'closed' WHERE coupon_id = 'coupon-2'`)
			},
			func(r *Report) { r.CouponsFrozen = 1 },
		},
		"the handler is called early": {
			func(s *shop) { s.call("open", executor.FromWheel) },
			func(r *Report) { r.Early = 1; r.By.Wheel++ },
		},
		"the handler is called before the time that the engine has been told since": {
			func(s *shop) {
				s.create("moved", time.Now().Add(-time.Second), "")
				s.extend("moved", time.Now().Add(time.Hour))
				s.told("moved", time.Now().Add(time.Hour))
				s.call("moved", executor.FromWheel)
			},
			func(r *Report) { r.Early = 1; r.By.Wheel++; r.Orders++; r.Open++ },
		},
		"the handler is called before every time that an order had": {
			func(s *shop) {
				s.extend("open", time.Now().Add(2*time.Hour))
				s.call("open", executor.FromRecovery)
			},
			func(r *Report) { r.Early = 1; r.By.Recovery++ },
		},
		"an order is closed by a clock that is ahead": {
			func(s *shop) {
				s.create("hasty", time.Now().Add(-time.Second), "")
				s.extend("hasty", time.Now().Add(time.Minute))
				s.callAt("hasty", executor.FromWheel, time.Now().Add(time.Hour))
				s.settle("hasty")
			},
			func(r *Report) { r.Early = 1; r.By.Wheel++; r.Orders++; r.Closed++ },
		},
		"the task of an open order is lost": {
			func(s *shop) { s.settle("open") },
			func(r *Report) { r.Lost = 1 },
		},
		"stock comes back twice": {
			func(s *shop) { s.sql(`UPDATE sku_stock SET stock = stock + 2 WHERE sku_id = 'apple'`) },
			func(r *Report) { r.DuplicateEffects = 2 },
		},
		"stock is released twice, out of what an open order holds": {
			func(s *shop) {
				s.sql(`UPDATE sku_stock SET stock = stock + 2, lock_stock = lock_stock - 2 WHERE sku_id = 'apple'`)
			},
			func(r *Report) { r.DuplicateEffects = 2 },
		},
		"too much of one sku does not hide too little of another": {
			func(s *shop) {
				s.sql(`UPDATE sku_stock SET stock = stock + 1 WHERE sku_id = 'apple'`, `UPDATE sku_stock SET stock = stock - 1 WHERE sku_id = 'pear'`)
			},
			func(r *Report) { r.DuplicateEffects = 1; r.StockMissing = 1 },
		},
		"a coupon is unfrozen twice": {
			func(s *shop) { s.sql(`UPDATE user_coupons SET status = 'unused' WHERE coupon_id = 'coupon-2'`) },
			func(r *Report) { r.DuplicateEffects = 1 },
		},
		"a coupon is unfrozen twice, the second time from another order": {
			func(s *shop) {
				s.create("again", time.Now().Add(time.Hour), "coupon-2")
				s.sql(`UPDATE user_coupons SET status = 'unused', order_no = NULL WHERE coupon_id = 'coupon-2'`)
			},
			func(r *Report) { r.DuplicateEffects = 1; r.Orders++; r.Open++ },
		},
		"the coupon of a paid order is unfrozen": {
			func(s *shop) {
				s.sql(`UPDATE user_coupons SET status = 'expired', order_no = NULL WHERE coupon_id = 'coupon-1'`)
			},
			func(r *Report) { r.DuplicateEffects = 1 },
		},
		"a payment is refunded twice": {
			func(s *shop) {
				s.sql(`CREATE TABLE loose AS SELECT * FROM refunds`, `DROP TABLE refunds`, `ALTER TABLE loose RENAME TO refunds`,
					`INSERT INTO refunds SELECT * FROM refunds`)
			},
			func(r *Report) { r.DuplicateEffects = 1; r.Refunds++ },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sound(t)
			want := soundReport
			c.want(&want)
			c.plant(s)
			require.Equal(t, want, s.report())
		})
	}
}

func TestWhatIsNoViolationIsNotReported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		allowed func(*shop)
		want    func(*Report)
	}{
		"a closed order is handled again": {
			func(s *shop) { s.fire("closed", executor.FromRecovery); s.fire("closed", executor.FromSweep) },
			func(r *Report) { r.By.Recovery++; r.By.Sweep++ },
		},
		"a call before the engine was told that the order has moved": {
			func(s *shop) {
				s.create("moved", time.Now().Add(-time.Second), "")
				s.extend("moved", time.Now().Add(time.Hour))
				s.call("moved", executor.FromWheel)
				time.Sleep(time.Millisecond) // the store's clock has whole milliseconds
				s.told("moved", time.Now().Add(time.Hour))
			},
			func(r *Report) { r.By.Wheel++; r.Orders++; r.Open++ },
		},
		"a call before the time that Redis forgot when it was killed": {
			func(s *shop) {
				s.create("moved", time.Now().Add(-time.Second), "")
				s.extend("moved", time.Now().Add(time.Hour))
				s.told("moved", time.Now().Add(time.Hour))
				s.RedisKilled()
				s.call("moved", executor.FromRecovery)
			},
			func(r *Report) { r.By.Recovery++; r.Orders++; r.Open++ },
		},
		"a call that the reconciliation with the database brought": {
			func(s *shop) { s.noteCall("closed", "reconcile", claimed, time.Now()) },
			func(r *Report) { r.By.Reconcile++ },
		},
		"a task without an order": {
			func(s *shop) { s.fire("ghost", executor.FromWheel) },
			func(r *Report) { r.By.Wheel++ },
		},
		"an open order whose task is running": {
			func(s *shop) { s.move("open", "running") },
			func(*Report) {},
		},
		"an open order whose task is dead": {
			func(s *shop) { s.move("open", "dead") },
			func(*Report) {},
		},
		"an open order that never expires": {
			func(s *shop) { s.create("cash", time.Time{}, ""); s.settle("cash") },
			func(r *Report) { r.Orders++; r.Open++ },
		},
		"an unused coupon runs out": {
			func(s *shop) { s.sql(`UPDATE user_coupons SET status = 'expired' WHERE coupon_id = 'coupon-2'`) },
			func(*Report) {},
		},
		"a coupon serves two orders, one after the other": {
			func(s *shop) {
				s.create("again", time.Now().Add(-time.Second), "coupon-2")
				s.fire("again", executor.FromWheel)
			},
			func(r *Report) { r.Orders++; r.Closed++; r.By.Wheel++ },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sound(t)
			want := soundReport
			c.want(&want)
			c.allowed(s)
			require.Equal(t, want, s.report())
		})
	}
}

func TestTasksCountsWhatRedisStillHas(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for i, state := range []string{"due", "running", "dead"} {
		s.move(fmt.Sprint("order ", i), state)
	}
	n, err := s.Tasks(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 3, n)
}

func TestLatenessIsThatOfTheFirstCallOfEachClosedOrder(t *testing.T) {
	t.Parallel()
	s := setup(t)
	expire := time.UnixMilli(time.Now().UnixMilli() - 5000)
	other, err := newCallLog(s.dir) // of another process
	require.NoError(t, err)
	defer func() { require.NoError(t, other.close()) }()
	for i := range 100 {
		orderNo := fmt.Sprint("order ", i)
		s.create(orderNo, expire, "")
		task := executor.Task{ID: orderNo, Attempt: 1}
		other.enter(expire.Add(time.Duration(i+1)*time.Millisecond), task) // and never returned: it was killed
		if i != 7 {                                                        // that one stays open, so it does not count
			s.fire(orderNo, executor.FromRecovery)
		}
	}
	r, err := s.Report(t.Context())
	require.NoError(t, err)
	require.Equal(t, LateMS{P50: 51, P99: 100, Max: 100}, r.LateMS)
	require.Equal(t, By{Wheel: 100, Recovery: 99}, r.By)
	require.Zero(t, r.Early)
}

func TestLatenessIsCountedFromTheLastTimeOfAnOrderThatWasExtended(t *testing.T) {
	t.Parallel()
	s := setup(t)
	first := time.UnixMilli(time.Now().UnixMilli() - 5000)
	last := first.Add(2 * time.Second)
	s.create("moved", first, "")
	s.extend("moved", last)
	n := s.log.enter(first.Add(time.Millisecond), executor.Task{ID: "moved", Attempt: 1, Now: first})
	s.log.leave(first.Add(2*time.Millisecond), n, errors.New("not yet"))
	s.told("moved", last)
	s.log.enter(last.Add(7*time.Millisecond), executor.Task{ID: "moved", Attempt: 1, Now: last})
	s.fire("moved", executor.FromRecovery)
	r, err := s.Report(t.Context())
	require.NoError(t, err)
	require.Equal(t, LateMS{P50: 7, P99: 7, Max: 7}, r.LateMS)
	require.Zero(t, r.Early)
}

func TestWithoutAClaimOnlyMovesByTheSameProcessAreInForce(t *testing.T) {
	t.Parallel()
	const orderNo = "x"
	s := &schedule{firstMS: map[string]int64{orderNo: 10}, moves: map[string][]move{orderNo: {
		{process: "other", atUS: 20_000, expireMS: 100}, {process: "mine", atUS: 30_000, expireMS: 50}, {process: "other", atUS: 40_000, expireMS: 200},
	}}}
	inForceMS := func(claim string, nowMS int64) int64 {
		us := s.inForceUS(&call{process: "mine", orderNo: orderNo, claim: claim, nowUS: 1000 * nowMS}, 200)
		return us / 1000
	}
	for _, c := range []struct{ nowMS, claimed, unclaimed int64 }{{19, 10, 10}, {20, 100, 10}, {30, 50, 50}, {39, 50, 50}, {40, 200, 50}} {
		require.Equal(t, c.claimed, inForceMS(claimed, c.nowMS), c)
		require.Equal(t, c.unclaimed, inForceMS(unclaimed, c.nowMS), c)
	}
}

func TestAMoveIsForgottenOnlyByAKillSoonAfterIt(t *testing.T) {
	t.Parallel()
	m := move{begunUS: 5_000_000, atUS: 5_500_000}
	for killUS, want := range map[int64]bool{4_999_999: false, 5_000_000: true, 8_500_000: true, 8_500_001: false} {
		s := &schedule{killsUS: []int64{1, killUS}}
		require.Equal(t, want, s.forgotten(m), killUS)
	}
}

func TestACallIsNotedWithItsOutcome(t *testing.T) {
	t.Parallel()
	s := setup(t)
	before := time.Now().UnixMicro()
	fails := s.Wrap(func(context.Context, executor.Task) error { return errors.New("no\nway") })
	require.EqualError(t, fails(t.Context(), executor.Task{ID: "x", Attempt: 3, Source: executor.FromSweep}), "no\nway")
	s.report()
	var orderNo, source, text string
	var attempt, pid int
	var entryUS, commitUS int64
	require.NoError(t, s.db.QueryRowContext(t.Context(), `SELECT pid, order_no, source, attempt, entry_us, commit_us, error FROM audit_calls`).
		Scan(&pid, &orderNo, &source, &attempt, &entryUS, &commitUS, &text))
	require.Equal(t, []any{os.Getpid(), "x", "sweep", 3, "no\nway"}, []any{pid, orderNo, source, attempt, text})
	require.LessOrEqual(t, before, entryUS)
	require.LessOrEqual(t, entryUS, commitUS)
}

func TestCallsOfManyGoroutinesAreAllNoted(t *testing.T) {
	t.Parallel()
	s := setup(t)
	h := s.Wrap(func(context.Context, executor.Task) error { return nil })
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for range 50 {
				_ = h(context.Background(), executor.Task{ID: "x", Attempt: 1, Source: executor.FromSweep})
			}
		})
	}
	wg.Wait()
	require.Equal(t, By{Sweep: 32 * 50}, s.report().By)
}

func TestANoteThatCannotBeWrittenIsReported(t *testing.T) {
	t.Parallel()
	s := setup(t)
	file := s.log.file
	closed, err := newCallLog(s.dir)
	require.NoError(t, err)
	require.NoError(t, closed.close())
	s.log.file = closed.file
	s.fire("ghost", executor.FromWheel)
	s.log.file = file
	_, err = s.Report(t.Context())
	require.ErrorContains(t, err, "file already closed")
	s.log.failed.Store(nil) // or closing the shop would tell it again
}

func TestCloseReturnsTheNoteThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	n, err := OpenNotes(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, n.log.file.Close())
	n.RedisKilled()
	require.ErrorContains(t, n.Close(), "file already closed")
}

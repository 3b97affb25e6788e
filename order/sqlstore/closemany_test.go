package sqlstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/sqlstore"
)

func (s *shop) closeMany(now time.Time, nos ...string) []order.Result {
	s.t.Helper()
	results, errs := s.CloseMany(s.t.Context(), nos, now)
	require.Equal(s.t, make([]error, len(nos)), errs)
	return results
}

// mix places n orders of a few users in every state, half of them with coupons, and returns their
// numbers and one that does not exist, shuffled.
func (s *shop) mix(rnd *rand.Rand, n int) (nos []string) {
	s.t.Helper()
	s.addStock("a", 9*int64(n))
	s.addStock("b", 9*int64(n))
	for i := range n {
		o := newOrder(fmt.Sprintf("m%03d", i), func(o *order.Order) {
			o.UserID = fmt.Sprint("user", rnd.IntN(5))
			o.Items = []order.Item{{SKU: "b", Quantity: 1 + rnd.Int64N(3)}}
			if rnd.IntN(2) == 0 {
				o.Items = append(o.Items, order.Item{SKU: "a", Quantity: 1 + rnd.Int64N(3)})
			}
			if rnd.IntN(2) == 0 {
				o.CouponID = "coupon of " + o.No
			}
			o.ExpireAt = []time.Time{due, due, due.Add(-time.Minute), due.Add(ms), {}}[rnd.IntN(5)]
		})
		if o.CouponID != "" {
			require.NoError(s.t, s.AddCoupon(s.t.Context(), o.CouponID, o.UserID, due.Add(ms*time.Duration(rnd.IntN(3)-1))))
		}
		require.NoError(s.t, s.Create(s.t.Context(), o, t0))
		nos = append(nos, o.No)
		switch rnd.IntN(8) {
		case 0:
			s.pay(payment("p"+o.No, o.No))
		case 1:
			s.abandon(o.No, t0)
		case 2:
			s.close(o.No, due.Add(-time.Second))
		}
	}
	nos = append(nos, "none")
	rnd.Shuffle(len(nos), func(i, j int) { nos[i], nos[j] = nos[j], nos[i] })
	return nos
}

// The dumb model of CloseMany is Close, in a loop: the same answers, and the same tables.
func TestCloseManyDoesWhatCloseDoesOneByOne(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		rnd, rounds := newRand(t), 8
		if raced {
			rounds = 3 // each is another one in each run
		}
		for range rounds {
			seed := rnd.Uint64()
			var shops [2]*shop
			var nos []string
			for i := range shops {
				shops[i] = twoKinds(setup(t, db))
				nos = shops[i].mix(rand.New(rand.NewPCG(seed, 1)), 40)
			}
			require.Equal(t, dump(t, shops[0]), dump(t, shops[1]))
			var want []order.Result
			for _, no := range nos {
				want = append(want, shops[0].close(no, due))
			}
			require.Equal(t, want, shops[1].closeMany(due, nos...))
			require.Equal(t, dump(t, shops[0]), dump(t, shops[1]))
			require.Equal(t, sqlstore.Stats{Batches: 1}, shops[1].Stats(), "in one transaction")
		}
	})
}

func TestMoreOrdersThanOneTransactionTakesAreClosedInSeveral(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s := setup(t, db)
		nos := s.createMany("o", 1100)
		for _, r := range s.closeMany(due, nos...) {
			require.Equal(t, order.ClosedNow, r.Outcome)
		}
		require.EqualValues(t, 3, s.Stats().Batches)
		for _, r := range s.closeMany(due, nos...) {
			require.Equal(t, order.ClosedAlready, r.Outcome)
		}
		require.Equal(t, [3]int64{2300, 0, 0}, s.stock("a"))
	})
}

func TestCloseManyOfNoneOfOneAndOfTheSame(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s := setup(t, db)
		require.Empty(t, s.closeMany(due))
		s.create("o")
		require.Equal(t, []order.Result{{Outcome: order.ClosedNow}}, s.closeMany(due, "o"))
		s.create("p")
		s.create("q")
		require.Equal(t, []order.Result{{Outcome: order.ClosedNow}, {Outcome: order.ClosedNow}, {Outcome: order.ClosedNow}},
			s.closeMany(due, "p", "q", "p"))
		require.Equal(t, [3]int64{100, 0, 0}, s.stock("a"))
	})
}

// Something outside the store spoiled one order: its error is its own, and the rest is closed.
func TestOneBadOrderHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		for name, spoil := range map[string]string{
			"a coupon that was unfrozen":     `UPDATE user_coupons SET status = 'unused', order_no = NULL WHERE coupon_id = 'c1'`,
			"a coupon of another order":      `UPDATE user_coupons SET order_no = 'o1' WHERE coupon_id = 'c1'`,
			"a release in the ledger":        `INSERT INTO stock_ledger VALUES ('o2', 'a', 'release', 2, 0)`,
			"a close in the log":             `INSERT INTO close_log (order_no, result, reason, at) VALUES ('o2', 'closed', 'by hand', 0)`,
			"a message in the outbox":        `INSERT INTO outbox (order_no, kind, reason, at) VALUES ('o2', 'stock', 'timeout', 0)`,
			"more locked than there is of b": `UPDATE order_items SET quantity = 50 WHERE order_no = 'o2' AND sku_id = 'b'`,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := twoKinds(unchecked(t, db))
				nos := []string{"o1", "o2", "o3", "o4", "o5"}
				for _, no := range nos {
					s.create(no, func(o *order.Order) {
						if no == "o2" {
							o.CouponID = "c1"
						}
					})
				}
				s.exec(spoil)
				results, errs := s.CloseMany(t.Context(), nos, due)
				for i, no := range nos {
					if no == "o2" {
						require.ErrorIs(t, errs[i], order.ErrInconsistency)
						require.ErrorContains(t, errs[i], `close order "o2"`)
						require.Equal(t, order.Unpaid, s.status(no))
						continue
					}
					require.NoError(t, errs[i])
					require.Equal(t, order.ClosedNow, results[i].Outcome)
					require.Equal(t, order.Closed, s.status(no))
				}
				require.Equal(t, [3]int64{98, 2, 0}, s.stock("a"), "o2 keeps its own")
				require.EqualValues(t, 1, s.Stats().BatchesFailed)
			})
		}
	})
}

func TestWhatIsHeldBackOfABatchStaysAndTheRestIsClosedAndTold(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		var told noted
		s, asked := asking(setup(t, db), func(_ context.Context, no string) (order.ProviderAnswer, error) {
			switch no {
			case "paid there":
				return order.PaidThere, nil
			case "error":
				return order.NotPaid, errInjected
			}
			return order.NotPaid, nil
		}, func(o *sqlstore.Options) {
			o.AfterClose = func(_ context.Context, no string, reason order.Reason) { told.add(no + " " + string(reason)) }
		})
		for _, no := range []string{"o1", "paid there", "o2", "error", "o3"} {
			s.create(no)
		}
		s.create("early", expiring(due.Add(ms)))
		results := s.closeMany(due, "o1", "paid there", "early", "o2", "none", "error", "o3")
		var outcomes []order.CloseOutcome
		for _, r := range results {
			outcomes = append(outcomes, r.Outcome)
		}
		require.Equal(t, []order.CloseOutcome{order.ClosedNow, order.HeldBack, order.NotYetDue, order.ClosedNow, order.NotFound,
			order.HeldBack, order.ClosedNow}, outcomes)
		require.False(t, results[1].AskAgain.Before(due.Add(5*time.Second)))
		require.ElementsMatch(t, []string{"o1", "paid there", "o2", "error", "o3"}, asked.all())
		require.ElementsMatch(t, []string{"o1 timeout", "o2 timeout", "o3 timeout"}, told.all())
		require.Equal(t, order.Unpaid, s.status("paid there"))
		require.Equal(t, order.Unpaid, s.status("error"))
	})
}

// A provider that hangs holds back the orders that it was asked about, for AskTimeout in all and
// not for each.
func TestAProviderThatHangsIsWaitedForOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		begun := time.Now()
		s, _ := asking(setup(t, db), func(ctx context.Context, no string) (order.ProviderAnswer, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		}, func(o *sqlstore.Options) { o.AskTimeout = 200 * ms })
		nos := s.createMany("o", 400)
		for _, r := range s.closeMany(due, nos...) {
			require.Equal(t, order.HeldBack, r.Outcome)
		}
		require.Less(t, time.Since(begun), 60*time.Second)
		require.EqualValues(t, 400, s.Stats().AskFailed)
	})
}

func TestCloseManyWithoutASaneClockOrWithACtxThatIsOverSaysSoOfEach(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s := setup(t, db)
		s.create("o")
		s.create("p")
		_, errs := s.CloseMany(t.Context(), []string{"o", "p"}, time.Time{})
		require.Len(t, errs, 2)
		for i, no := range []string{"o", "p"} {
			require.ErrorIs(t, errs[i], order.ErrInvalid)
			require.ErrorContains(t, errs[i], fmt.Sprintf("close order %q", no))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, errs = s.CloseMany(ctx, []string{"o", "p"}, due)
		for _, err := range errs {
			require.ErrorIs(t, err, context.Canceled)
		}
		require.Equal(t, order.Unpaid, s.status("o"))
	})
}

// Fail each step of the one transaction in turn: the orders are closed all the same, each once.
func TestAStepThatFailsOfABatchLeavesEachOrderToItself(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		nos := []string{"o1", "o2", "o3"}
		place := func() (*shop, *faultConnector) {
			s, c := setupFaulty(t, db)
			s = twoKinds(s)
			s.create("o1", withCoupon("c1"))
			s.create("o2", func(o *order.Order) { o.UserID = "v" })
			s.create("o3")
			return s, c
		}
		twin, _ := place()
		twin.closeMany(due, nos...)
		want := dump(t, twin)
		for _, when := range []string{"before", "after"} {
			for k := 0; ; k++ {
				s, c := place()
				var reached atomic.Bool
				var step string
				fail := at(k, &reached, func(_ context.Context, name string) error { step = name; return errInjected })
				if when == "before" {
					c.arm(faults{before: fail})
				} else {
					c.arm(faults{after: fail})
				}
				results := s.closeMany(due, nos...)
				c.disarm()
				require.Equal(t, want, dump(t, s), "%s %s", when, step)
				if !reached.Load() {
					require.GreaterOrEqual(t, k, 10)
					break
				}
				for _, r := range results {
					if when == "after" && step == "commit" {
						require.Equal(t, order.ClosedAlready, r.Outcome, "the answer was lost, and found out")
					} else {
						require.Equal(t, order.ClosedNow, r.Outcome, "%s %s", when, step)
					}
				}
				require.EqualValues(t, 1, s.Stats().BatchesFailed)
			}
		}
	})
}

func TestABatchThatOthersStopIsRunAgain(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		for k := 0; ; k++ {
			s, c := setupFaulty(t, db)
			s.create("o1")
			s.create("o2")
			var reached atomic.Bool
			c.arm(faults{before: at(k, &reached, func(context.Context, string) error { return errStopped })})
			results := s.closeMany(due, "o1", "o2")
			c.disarm()
			require.Equal(t, []order.Result{{Outcome: order.ClosedNow}, {Outcome: order.ClosedNow}}, results)
			require.Zero(t, s.Stats().BatchesFailed)
			if !reached.Load() {
				return
			}
		}
	})
}

// Batches of two processes, overlapping and each in an order of its own, and payments, and single
// closes: each order is closed or paid once.
func TestBatchesPaymentsAndClosesRaceAndExactlyOneWins(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		stores, nos := setupRace(t, db, races())
		rnd := newRand(t)
		var closed, paid, refunded atomic.Int64
		var wg sync.WaitGroup
		count := func(what string, outcome any, err error) {
			switch {
			case err != nil:
				t.Errorf("%s: %v", what, err)
			case outcome == order.ClosedNow:
				closed.Add(1)
			case outcome == order.PaidNow:
				paid.Add(1)
			case outcome == order.Refunded:
				refunded.Add(1)
			}
		}
		batches := func(s *shop, list []string) {
			for part := range slices.Chunk(list, 40) {
				results, errs := s.CloseMany(context.Background(), part, due)
				for i := range part {
					count("batch: "+part[i], results[i].Outcome, errs[i])
				}
			}
		}
		shuffled := func(list []string) []string {
			list = slices.Clone(list)
			rnd.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			return list
		}
		pays, singles := shuffled(nos)[:len(nos)/2], shuffled(nos)[:len(nos)/10]
		for i := range 4 {
			list := shuffled(nos)
			wg.Go(func() { batches(stores[i%2], list) })
		}
		wg.Go(func() {
			for _, no := range pays {
				out, err := stores[0].Pay(context.Background(), payment("p"+no, no))
				count("pay: "+no, out, err)
			}
		})
		wg.Go(func() {
			for _, no := range singles {
				r, err := stores[1].Close(context.Background(), no, due)
				count("close: "+no, r.Outcome, err)
			}
		})
		wg.Wait()
		t.Logf("closed %d, paid %d, refunded %d; batches %+v and %+v", closed.Load(), paid.Load(), refunded.Load(), stores[0].Stats(), stores[1].Stats())
		require.EqualValues(t, len(nos), closed.Load()+paid.Load())
		require.EqualValues(t, len(pays), paid.Load()+refunded.Load())
		require.EqualValues(t, refunded.Load(), stores[0].count(`SELECT COUNT(*) FROM refunds`))
		require.Zero(t, stores[0].count(`SELECT COUNT(*) FROM orders WHERE status = 'unpaid'`))
	})
}

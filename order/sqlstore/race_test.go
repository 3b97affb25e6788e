package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/order"
)

// races is how many orders a race test has: all of them where ORDERWHEEL_LONG is set, few under
// the race detector, so `make test` runs the package without it, too.
func races() int {
	switch {
	case os.Getenv("ORDERWHEEL_LONG") != "":
		return 10_000
	case raced:
		return 200
	}
	return 1_000
}

// newRand is a source whose seed is printed; ORDERWHEEL_SEED sets it.
func newRand(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if v := os.Getenv("ORDERWHEEL_SEED"); v != "" {
		var err error
		seed, err = strconv.ParseUint(v, 10, 64)
		require.NoError(t, err, "ORDERWHEEL_SEED")
	}
	t.Logf("ORDERWHEEL_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// setupRace has two stores on one database, as two processes would, and n orders.
func setupRace(t *testing.T, db backend, n int) (stores [2]*shop, nos []string) {
	t.Helper()
	dsn := db.place(t)
	for i := range stores {
		stores[i] = newShop(t, db, db.opened(t, dsn))
	}
	nos = stores[0].createMany("o", n)
	require.Empty(t, stores[0].violations())
	stores[0].checkAtEnd()
	return stores, nos
}

// Case 127: the scan job and the delay message both close.
func TestScanAndDelayMessageBothCloseAndTheStockComesBackOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		stores, nos := setupRace(t, db, races())
		results := make(chan order.CloseOutcome, 2*len(nos))
		var wg sync.WaitGroup
		for _, s := range stores {
			work := make(chan string, len(nos))
			for _, no := range nos { // both in the same order, so that they meet
				work <- no
			}
			close(work)
			for range 4 {
				wg.Go(func() {
					for no := range work {
						r, err := s.Close(context.Background(), no, due)
						if err != nil {
							t.Errorf("close %s: %v", no, err)
						}
						results <- r.Outcome
					}
				})
			}
		}
		wg.Wait()
		close(results)
		count := map[order.CloseOutcome]int{}
		for o := range results {
			count[o]++
		}
		require.Equal(t, map[order.CloseOutcome]int{order.ClosedNow: len(nos), order.ClosedAlready: len(nos)}, count)
		n := int64(len(nos))
		require.Equal(t, [3]int64{2 * n, 0, 0}, stores[0].stock("a"))
		require.Equal(t, [3]int64{3 * n, 0, 0}, stores[0].stock("b"))
		require.Equal(t, len(nos)/2, stores[0].count(`SELECT COUNT(*) FROM user_coupons WHERE status = 'unused'`))
	})
}

// Two payments, one of them told twice, two closes and sometimes an extension of each order, a few
// orders at a time, in any order. Exactly one wins; the invariants hold the rest.
func TestPayAndCloseRaceAndExactlyOneWins(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		const together = 25
		stores, nos := setupRace(t, db, races())
		rnd := newRand(t)
		won := map[string]int{}
		for len(nos) > 0 {
			n := min(together, len(nos))
			r := race{t: t, stores: stores, outcomes: map[string][]any{}}
			for _, no := range nos[:n] {
				r.line(no, rnd.IntN(4) == 0)
			}
			r.run(rnd)
			for _, no := range nos[:n] {
				won[r.judge(no)]++
			}
			nos = nos[n:]
		}
		t.Logf("won: %v", won)
		require.NotZero(t, won["pay"])
		require.NotZero(t, won["close"])
	})
}

// race is one round: the starters, and what each order's calls answered.
type race struct {
	t        *testing.T
	stores   [2]*shop
	starters []func()

	mu       sync.Mutex
	outcomes map[string][]any // PayOutcome by payment told, CloseOutcome by close
}

// line puts the calls for one order at the start.
func (r *race) line(no string, extend bool) {
	ctx := context.Background()
	add := func(call func(s *shop) (any, error)) {
		s := r.stores[len(r.starters)%2]
		r.starters = append(r.starters, func() {
			out, err := call(s)
			if err != nil {
				r.t.Errorf("order %s: %v", no, err)
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			r.outcomes[no] = append(r.outcomes[no], out)
		})
	}
	pay := func(id string) func(s *shop) (any, error) {
		return func(s *shop) (any, error) { return s.Pay(ctx, payment(id+no, no)) }
	}
	closeAt := func(now time.Time) func(s *shop) (any, error) {
		return func(s *shop) (any, error) {
			res, err := s.Close(ctx, no, now)
			return res.Outcome, err
		}
	}
	add(pay("p"))
	add(pay("p"))
	add(pay("q"))
	add(closeAt(due))
	add(closeAt(due))
	if extend {
		r.starters = append(r.starters, func() {
			if err := r.stores[0].Extend(ctx, no, due.Add(ms)); err != nil && !errors.Is(err, order.ErrNotUnpaid) {
				r.t.Errorf("extend %s: %v", no, err)
			}
		})
	}
}

// run starts all at once, shuffled.
func (r *race) run(rnd *rand.Rand) {
	rnd.Shuffle(len(r.starters), func(i, j int) { r.starters[i], r.starters[j] = r.starters[j], r.starters[i] })
	var wg sync.WaitGroup
	for _, start := range r.starters {
		wg.Go(start)
	}
	wg.Wait()
}

// judge checks the answers for one order and says what won.
func (r *race) judge(no string) (winner string) {
	count := map[any]int{}
	for _, o := range r.outcomes[no] {
		count[o]++
	}
	s := r.stores[0]
	refunds := s.count(`SELECT COUNT(*) FROM refunds WHERE order_no = ?`, no)
	switch s.status(no) {
	case order.Paid:
		require.Equal(r.t, 1, count[order.PaidNow], "%s: %v", no, count)
		require.Zero(r.t, count[order.ClosedNow], "%s: %v", no, count)
		require.Equal(r.t, 1, refunds, "%s: the other payment goes back", no)
		require.Equal(r.t, 3, count[order.PaidNow]+count[order.PaidAlready]+count[order.Refunded])
		return "pay"
	case order.Closed:
		require.Equal(r.t, 1, count[order.ClosedNow], "%s: %v", no, count)
		require.Equal(r.t, 1, count[order.ClosedAlready]+count[order.NotYetDue], "%s: %v", no, count)
		require.Equal(r.t, 3, count[order.Refunded], "%s: %v", no, count)
		require.Equal(r.t, 2, refunds, "%s: both payments go back, each once", no)
		return "close"
	}
	r.t.Fatalf("order %s is still unpaid", no)
	return ""
}

// Buyers of the last units: none is sold twice, and what is closed is sold again.
func TestBuyersRaceForTheLastUnits(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		stores, _ := setupRace(t, db, 1)
		stores[0].addStock("last", 10)
		var wg sync.WaitGroup
		var got atomic.Int64
		for i := range 40 {
			s := stores[i%2]
			wg.Go(func() {
				o := newOrder(fmt.Sprint("buyer", i), func(o *order.Order) { o.Items = []order.Item{{SKU: "last", Quantity: 1}} })
				switch err := s.Create(context.Background(), o, t0); {
				case err == nil:
					got.Add(1)
				case !errors.Is(err, order.ErrOutOfStock):
					t.Errorf("create %s: %v", o.No, err)
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 10, got.Load())
		require.Equal(t, [3]int64{0, 10, 0}, stores[0].stock("last"))
	})
}

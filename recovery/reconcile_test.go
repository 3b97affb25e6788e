package recovery

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/persist"
	"github.com/orderwheel/orderwheel/wheel"
)

// fakeSource is an order database: unpaid orders and when they expire.
type fakeSource struct {
	mu     sync.Mutex
	unpaid map[string]int64
	pages  int
	during func(page int) // called after each page was read
	answer func(ctx context.Context, after string, limit int) ([]string, []int64, error)
}

func newFakeSource() *fakeSource { return &fakeSource{unpaid: map[string]int64{}} }

func (s *fakeSource) Unpaid(ctx context.Context, after string, limit int) (ids []string, dueMS []int64, err error) {
	s.mu.Lock()
	if answer := s.answer; answer != nil {
		s.mu.Unlock()
		return answer(ctx, after, limit)
	}
	for id := range s.unpaid {
		if id > after {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	ids = ids[:min(limit, len(ids))]
	for _, id := range ids {
		dueMS = append(dueMS, s.unpaid[id])
	}
	s.pages++
	page := s.pages
	s.mu.Unlock()
	if s.during != nil {
		s.during(page)
	}
	return ids, dueMS, nil
}

func (s *fakeSource) put(id string, dueMS int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unpaid[id] = dueMS
}

func (s *fakeSource) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.unpaid, id)
}

// withSource gives the rig an order database. The store's tasks are those of its Memory.
func withSource(s Source) func(*Config) { return func(c *Config) { c.Source = s } }

func (r *rig) status(t *testing.T, id string) persist.Record {
	t.Helper()
	records, err := r.store.Lookup(t.Context(), []string{id})
	require.NoError(t, err)
	return records[0]
}

func TestAnUnpaidOrderThatStandsNowhereIsPutBackAndArmedHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		orders := newFakeSource()
		r := setup(t, withSource(orders))
		nowMS := time.Now().UnixMilli()
		orders.put("overdue", nowMS-5000)
		orders.put("soon", nowMS+60_000)
		orders.put("far", nowMS+7_200_000)
		require.NoError(t, r.Rebuild(t.Context()))
		r.Start()
		later(100 * time.Millisecond)
		require.Equal(t, []wheel.Due{{ID: "overdue", DueMS: nowMS - 5000}}, r.get(&r.reconciled))
		require.Equal(t, map[string]int64{"soon": nowMS + 60_000}, r.armed(), "what is far is for the pager")
		for id, dueMS := range orders.unpaid {
			require.Equal(t, dueMS, r.status(t, id).DueMS)
		}
		stats := r.Stats()
		require.EqualValues(t, 3, stats.Reconciled)
		require.EqualValues(t, 3, stats.ReconcileFound)
		require.Contains(t, r.log.String(), "reconcile_found tasks=3 confirmed=3 orders=3")
		require.Contains(t, fmt.Sprint(r.Problems()), "3 unpaid orders had no task")
		later(5 * time.Minute)
		require.EqualValues(t, 3, r.Stats().ReconcileFound)
		require.EqualValues(t, 6, r.Stats().Reconciled)
		require.Empty(t, r.Problems(), "the last round found nothing")
	})
}

// A moved time, a run that goes on, its successor, a dead one and its reason.
func TestWhatStandsInTheStoreStaysAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		orders := newFakeSource()
		r := setup(t, withSource(orders))
		ctx, nowMS := t.Context(), time.Now().UnixMilli()
		ids := []string{"dead", "extended", "running"}
		for _, id := range ids {
			orders.put(id, nowMS-1)
			require.NoError(t, r.store.Schedule(ctx, []persist.Due{{ID: id, DueMS: 1}}))
		}
		_, err := r.store.Claim(ctx, "tok", []string{"dead", "running"}, time.Hour, 0)
		require.NoError(t, err)
		_, err = r.store.Bury(ctx, []persist.Burial{{Lease: persist.Lease{ID: "dead", Token: "tok"}, Reason: "why"}})
		require.NoError(t, err)
		require.NoError(t, r.store.Schedule(ctx, []persist.Due{{ID: "extended", DueMS: nowMS + 60_000}}))
		before, err := r.store.Lookup(ctx, ids)
		require.NoError(t, err)
		r.Start()
		later(time.Minute)
		after, err := r.store.Lookup(ctx, ids)
		require.NoError(t, err)
		require.Equal(t, before, after)
		require.Zero(t, r.Stats().ReconcileFound)
		require.EqualValues(t, 3, r.Stats().Reconciled)
		require.Empty(t, r.Problems())
	})
}

// Paid and cancelled between the reading and the writing: it is put back, will find
// nothing to do, and is no alarm.
func TestAnOrderThatWasPaidMeanwhileIsNoAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		orders := newFakeSource()
		r := setup(t, withSource(orders))
		dueMS := time.Now().UnixMilli() + 60_000
		orders.put("paid", dueMS)
		orders.during = func(page int) {
			if page == 1 {
				orders.remove("paid")
			}
		}
		require.NoError(t, r.Rebuild(t.Context()))
		r.Start()
		later(time.Second)
		require.EqualValues(t, 1, r.Stats().ReconcileFound)
		require.Contains(t, r.log.String(), "reconcile_found tasks=1 confirmed=0")
		require.Empty(t, r.Problems())
		require.Equal(t, dueMS, r.armed()["paid"])
	})
}

// A user's call on the id while the answer is on its way is newer than the answer.
func TestAUsersCallMeanwhileWinsOverWhatReconciliationArms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		orders := newFakeSource()
		slow := &slowEnsure{}
		r := setup(t, withSource(orders), func(c *Config) { slow.Store, c.Store = c.Store, slow })
		nowMS := time.Now().UnixMilli()
		orders.put("moved", nowMS+60_000)
		slow.after = func() { r.cfg.Board.UserScheduled("moved", nowMS+90_000) }
		require.NoError(t, r.Rebuild(t.Context()))
		r.Start()
		later(time.Second)
		require.Equal(t, map[string]int64{"moved": nowMS + 90_000}, r.armed())
	})
}

// slowEnsure does something between the store's answer and its arrival.
type slowEnsure struct {
	Store
	after func()
}

func (s *slowEnsure) Ensure(ctx context.Context, dues []persist.Due) ([]bool, error) {
	ensured, err := s.Store.Ensure(ctx, dues)
	s.after()
	return ensured, err
}

func TestAllPagesAreReadAndWhatCannotBeATaskStopsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		orders := newFakeSource()
		r := setup(t, withSource(orders))
		dueMS := time.Now().UnixMilli() + 7_200_000
		for i := range 4*unpaidPage + 7 {
			orders.put(fmt.Sprintf("%06d", i), dueMS)
		}
		long := strings.Repeat("0", persist.MaxIDLen+1)
		for id, ms := range map[string]int64{"": dueMS, long: dueMS, "000000 early": -1, "000001 never": persist.MaxDueMS + 1} {
			orders.put(id, ms)
		}
		orders.answer = func(ctx context.Context, after string, limit int) ([]string, []int64, error) {
			orders := &fakeSource{unpaid: orders.unpaid}
			ids, dueMS, err := orders.Unpaid(ctx, after, limit)
			if after == "" { // keyset pages never show it otherwise
				ids, dueMS = append([]string{""}, ids...), append([]int64{1}, dueMS...)
			}
			return ids, dueMS, err
		}
		r.Start()
		later(time.Minute)
		require.EqualValues(t, 4*unpaidPage+7, r.Stats().ReconcileFound)
		require.EqualValues(t, 4, r.Stats().ReconcileRefused)
		require.Contains(t, r.log.String(), "reconcile_refused orders=4")
		require.Contains(t, fmt.Sprint(r.Problems()), "4 unpaid orders cannot be scheduled")
		depth, err := r.store.Depth(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 4*unpaidPage+7, depth.Due)
	})
}

func TestASourceThatAnswersNonsenseEndsTheRoundWithAnErrorInWords(t *testing.T) {
	one := []int64{1}
	for name, c := range map[string]struct {
		answer func(ctx context.Context, after string, limit int) ([]string, []int64, error)
		want   string
	}{
		"it fails": {func(context.Context, string, int) ([]string, []int64, error) {
			return nil, nil, errors.New("table is locked")
		}, "table is locked"},
		"it panics":                   {func(context.Context, string, int) ([]string, []int64, error) { panic("no rows") }, "panic: no rows"},
		"it ends its goroutine":       {func(context.Context, string, int) ([]string, []int64, error) { runtime.Goexit(); return nil, nil, nil }, "runtime.Goexit"},
		"a time is missing":           {func(context.Context, string, int) ([]string, []int64, error) { return []string{"a", "b"}, one, nil }, "2 ids after \\\"\\\", but 1 times"},
		"the page is always the same": {func(context.Context, string, int) ([]string, []int64, error) { return []string{"a"}, one, nil }, "do not advance"},
		"the page ends with nothing":  {func(context.Context, string, int) ([]string, []int64, error) { return []string{""}, one, nil }, "do not advance"},
		"the pages go round in circles": {func(_ context.Context, after string, _ int) ([]string, []int64, error) {
			return []string{next(after, "abcdefg")}, one, nil
		}, "reached twice"},
		"it heeds its ctx, and no more": {func(ctx context.Context, _ string, _ int) ([]string, []int64, error) {
			<-ctx.Done()
			return nil, nil, ctx.Err()
		}, "deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				orders := newFakeSource()
				orders.answer = c.answer
				r := setup(t, withSource(orders))
				r.Start()
				later(2 * time.Minute)
				require.Contains(t, r.log.String(), c.want)
				require.Equal(t, 1, strings.Count(r.log.String(), "reconcile_failed"), "it is new only once")
				require.Contains(t, fmt.Sprint(r.Problems()), "reconciling with the order database has failed for")
				orders.mu.Lock()
				orders.answer = nil
				orders.mu.Unlock()
				later(time.Minute)
				require.Empty(t, slices.DeleteFunc(r.Problems(), func(p string) bool { return strings.Contains(p, "had no task") }))
			})
		})
	}
}

// next is the letter after, and after the last one the first.
func next(after, letters string) string {
	i := strings.Index(letters, after)
	if after == "" {
		i = -1
	}
	return letters[(i+1)%len(letters):][:1]
}

func TestASourceThatDoesNotReturnIsAskedOnceAndHoldsUpNoStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		orders := newFakeSource()
		free, calls := make(chan struct{}), 0
		orders.answer = func(context.Context, string, int) ([]string, []int64, error) {
			calls++
			<-free
			return nil, nil, nil
		}
		r := setup(t, withSource(orders))
		r.Start()
		later(10 * time.Minute)
		require.Equal(t, 1, calls)
		require.Contains(t, fmt.Sprint(r.Problems()), "has not returned from an earlier call")
		r.Stop()
		close(free)
	})
}

func TestOneInstanceOfAllReconcilesInAPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, orders := newFakeStore(), newFakeSource()
		var all []*rig
		for range 4 {
			all = append(all, setup(t, withSource(orders), func(c *Config) { c.Store = store }))
		}
		rounds := func() int { orders.mu.Lock(); defer orders.mu.Unlock(); return orders.pages }
		for _, r := range all {
			r.Start()
			later(time.Second)
		}
		require.Equal(t, 4, rounds(), "each looks once, when it starts")
		later(time.Hour)
		require.InDelta(t, 4+12, rounds(), 1)
	})
}

// The round of an instance that dies is another's when its turn is over.
func TestATurnWhoseOwnerDiedIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		orders := newFakeSource()
		r := setup(t, withSource(orders))
		turn, _, err := r.store.TakeTurn(t.Context(), "the-dead-one", turnLease, false)
		require.NoError(t, err)
		require.Equal(t, persist.TurnTaken, turn)
		orders.put("A", 1)
		r.Start()
		later(turnLease - time.Second)
		require.Zero(t, r.Stats().Reconciled)
		later(2 * time.Second)
		require.EqualValues(t, 1, r.Stats().Reconciled)
	})
}

// Stop within a round gives the turn back, so that the next instance need not wait.
func TestStopWithinARoundGivesTheTurnBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		orders := newFakeSource()
		orders.answer = func(ctx context.Context, _ string, _ int) ([]string, []int64, error) {
			<-ctx.Done()
			return nil, nil, ctx.Err()
		}
		r := setup(t, withSource(orders))
		r.Start()
		later(time.Second)
		r.Stop()
		later(looksAgain)
		turn, _, err := r.store.TakeTurn(t.Context(), "the-next", time.Minute, false)
		require.NoError(t, err)
		require.Equal(t, persist.TurnTaken, turn)
		require.NotContains(t, r.log.String(), "reconcile_failed", "nothing went wrong")
	})
}

// Another instance has the turn, since this one took longer than it had.
func TestARoundWhoseTurnIsAnothersEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		orders := newFakeSource()
		r := setup(t, withSource(orders))
		for i := range 20 * unpaidPage {
			orders.put(fmt.Sprintf("%06d", i), 1)
		}
		orders.during = func(page int) {
			if page == 1 {
				time.Sleep(turnLease/4 + time.Second)
				_, err := r.store.EndTurn(t.Context(), r.rounds.owner, time.Millisecond)
				require.NoError(t, err)
				time.Sleep(2 * time.Millisecond)
				_, _, err = r.store.TakeTurn(t.Context(), "another", time.Hour, false)
				require.NoError(t, err)
			}
		}
		r.Start()
		later(2 * time.Minute)
		require.Contains(t, r.log.String(), "another instance has taken the turn")
		require.EqualValues(t, unpaidPage, r.Stats().Reconciled)
	})
}

// A shard is away: what the others have is put back, and the round is made again.
func TestAPartialAnswerIsUsedAndTheRoundIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		orders := newFakeSource()
		part := new(partialEnsure)
		part.away.Store(true)
		r := setup(t, withSource(orders), func(c *Config) { part.Store, c.Store, c.Patience = c.Store, part, time.Second })
		for i := range 2 * unpaidPage {
			orders.put(fmt.Sprintf("%06d", i), 1)
		}
		r.Start()
		later(5 * time.Second)
		require.EqualValues(t, unpaidPage, r.Stats().ReconcileFound, "every other one")
		require.Contains(t, fmt.Sprint(r.Problems()), "has not answered for 500 of 1000 unpaid orders")
		part.away.Store(false)
		later(2 * againAfter)
		require.EqualValues(t, 2*unpaidPage, r.Stats().ReconcileFound)
	})
}

// partialEnsure answers for every other id.
type partialEnsure struct {
	Store
	away atomic.Bool
}

func (s *partialEnsure) Ensure(ctx context.Context, dues []persist.Due) ([]bool, error) {
	if !s.away.Load() {
		return s.Store.Ensure(ctx, dues)
	}
	p := &persist.PartialError{Err: context.DeadlineExceeded}
	ensured := make([]bool, len(dues))
	for i := range dues {
		if i%2 == 1 {
			p.Missing = append(p.Missing, i)
			continue
		}
		one, err := s.Store.Ensure(ctx, dues[i:i+1])
		if err != nil {
			return nil, err
		}
		ensured[i] = one[0]
	}
	return ensured, p
}

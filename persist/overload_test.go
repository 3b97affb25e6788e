package persist_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/persist"
	"github.com/orderwheel/orderwheel/persist/persisttest"
)

// limited makes the store of a bed one with a limit.
func (b bed) limited(t testing.TB, opts persist.Options) bed {
	t.Helper()
	s, err := persist.New(b.client, opts)
	require.NoError(t, err)
	b.Redis = s
	return b
}

func someDues(ms int64, ids ...string) []persist.Due {
	var dues []persist.Due
	for _, id := range ids {
		dues = append(dues, persist.Due{ID: id, DueMS: ms})
	}
	return dues
}

// Case 24.
func TestTheFirstTaskOverMaxPendingIsRefusedAndNothingIsLost(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		const most = 10_000
		b = b.limited(t, persist.Options{MaxPending: most})
		require.Empty(t, b.Problems())
		all := ids("order", most)
		b.scheduled(t, future, all...)
		err := b.Schedule(t.Context(), someDues(future, "one more"))
		require.ErrorIs(t, err, persist.ErrOverloaded)
		require.ErrorContains(t, err, "MaxPending is 10000")
		require.NotErrorIs(t, err, persist.ErrUnknownOutcome)
		require.False(t, errors.As(err, new(*persist.PartialError)), "all of it has no answer")
		depth, err := b.Depth(t.Context())
		require.NoError(t, err)
		require.Equal(t, persist.Depth{Due: most}, depth)
		require.Len(t, b.Problems(), 1)
		require.Contains(t, b.Problems()[0], "MaxPending")

		_, err = b.Cancel(t.Context(), all[:1])
		require.NoError(t, err)
		b.scheduled(t, future, "one more")
	})
}

func TestWhatIsPendingOrRunningMovesAtMaxPending(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		b = b.limited(t, persist.Options{MaxPending: 2})
		b.scheduled(t, past, "running", "due")
		b.claimed(t, "token", time.Minute, "running")
		b.scheduled(t, future, "other")
		b.scheduled(t, future+1, "due", "running", "other")
		records, err := b.Lookup(t.Context(), []string{"due", "running", "other"})
		require.NoError(t, err)
		require.EqualValues(t, future+1, records[0].DueMS)
		require.EqualValues(t, future+1, records[1].Successor)
		require.EqualValues(t, future+1, records[2].DueMS)
	})
}

// A batch for which there is no room as a whole has as much of it as there is.
func TestABatchIsRefusedInPartAtMaxPending(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		b = b.limited(t, persist.Options{MaxPending: 3})
		b.scheduled(t, past, "a", "dead")
		b.claimed(t, "token", time.Minute, "dead")
		_, err := b.Bury(t.Context(), []persist.Burial{{Lease: persist.Lease{ID: "dead", Token: "token"}}})
		require.NoError(t, err)
		err = b.Schedule(t.Context(), someDues(future, "b", "b", "a", "c", "d", "dead", "c"))
		require.ErrorIs(t, err, persist.ErrOverloaded)
		require.Equal(t, []int{4, 5}, persist.Missing(err, 7))
		require.Equal(t, map[string]string{"a": fmt.Sprint(future), "b": fmt.Sprint(future), "c": fmt.Sprint(future)}, b.stored(t).Due)
		require.Contains(t, b.stored(t).Dead, "dead", "it is new among the due")
	})
}

// What has been accepted goes its way: a retry, a successor, a requeue, and what the
// order database has.
func TestOnlyScheduleIsBoundByMaxPending(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		b = b.limited(t, persist.Options{MaxPending: 1})
		ctx := t.Context()
		lease := func(id string) persist.Lease { return persist.Lease{ID: id, Token: "token"} }
		for _, id := range []string{"dead", "retried", "succeeded"} {
			b.scheduled(t, past, id)
			b.claimed(t, "token", time.Minute, id)
		}
		_, err := b.Bury(ctx, []persist.Burial{{Lease: lease("dead")}})
		require.NoError(t, err)
		b.scheduled(t, future, "full", "succeeded")
		retried, err := b.Retry(ctx, []persist.Retry{{Lease: lease("retried"), DueMS: future}})
		require.NoError(t, err)
		require.Equal(t, persist.Scheduled, retried[0].State)
		acked, err := b.Ack(ctx, []persist.Lease{lease("succeeded")})
		require.NoError(t, err)
		require.Equal(t, persist.Scheduled, acked[0].State)
		requeued, err := b.Requeue(ctx, []string{"dead"})
		require.NoError(t, err)
		require.Equal(t, persist.Scheduled, requeued[0].State)
		ensured, err := b.Ensure(ctx, someDues(future, "ensured"))
		require.NoError(t, err)
		require.Equal(t, []bool{true}, ensured)
		require.Len(t, b.stored(t).Due, 5)
	})
}

// Two instances with many callers each: exactly as many are accepted as there is room.
func TestCallersTogetherDoNotExceedMaxPending(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		const most = 500
		opts := persist.Options{MaxPending: most}
		stores := []bed{b.limited(t, opts), b.limited(t, opts)}
		var accepted, refused atomic.Int64
		var wg sync.WaitGroup
		for g := range 16 {
			wg.Go(func() {
				for i := range 20 {
					batch := someDues(future, ids(fmt.Sprintf("%d-%d", g, i), 5)...)
					err := stores[g%2].Schedule(t.Context(), batch)
					if err != nil && !errors.Is(err, persist.ErrOverloaded) {
						t.Error(err)
					}
					n := int64(len(persist.Missing(err, len(batch))))
					refused.Add(n)
					accepted.Add(int64(len(batch)) - n)
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, most, accepted.Load())
		require.EqualValues(t, 16*20*5-most, refused.Load())
		depth, err := b.Depth(t.Context())
		require.NoError(t, err)
		require.Equal(t, persist.Depth{Due: most}, depth)
	})
}

// Case 82, with a limit: what brings new work in is refused as a whole, the rest goes on.
func TestAFullRedisRefusesSchedulesWithinMaxPending(t *testing.T) {
	t.Parallel()
	b := setupReal(t).limited(t, persist.Options{MaxPending: 2})
	b.scheduled(t, future, "old", "due")
	do(t, b.client, "CONFIG", "SET", "maxmemory", "1")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, b.Schedule(ctx, someDues(past, "new", "old")), persist.ErrDegraded)
	cancelled, err := b.Cancel(t.Context(), []string{"due"})
	require.NoError(t, err)
	require.Equal(t, []persist.CancelOutcome{persist.Cancelled}, cancelled)
	require.Equal(t, map[string]string{"old": fmt.Sprint(future)}, b.stored(t).Due)
	do(t, b.client, "CONFIG", "SET", "maxmemory", "0")
	b.scheduled(t, past, "new", "old")
}

func TestEachShardTakesItsPartOfMaxPending(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		const shards, most = 4, 10 // three each
		b = b.limited(t, persist.Options{Shards: shards, MaxPending: most})
		all := ids("order", 100)
		err := b.Schedule(t.Context(), someDues(future, all...))
		require.ErrorIs(t, err, persist.ErrOverloaded)
		missing := persist.Missing(err, len(all))
		accepted := map[int]int{}
		for i, id := range all {
			if !slices.Contains(missing, i) {
				accepted[persist.ShardOf(id, shards)]++
			}
		}
		require.Equal(t, map[int]int{0: 3, 1: 3, 2: 3, 3: 3}, accepted)
		require.Len(t, b.Problems(), shards)
	})
}

// Random operations: what a Schedule accepts and refuses follows from where its ids stood.
func TestMaxPendingAtRandom(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		for _, seed := range persisttest.Seeds(t, 3) {
			t.Logf("ORDERWHEEL_SEED=%d", seed)
			rnd := rand.New(rand.NewPCG(seed, 0))
			names := ids(fmt.Sprintf("s%d", seed), 14)
			const most = 5
			b := b.limited(t, persist.Options{Namespace: fmt.Sprintf("n%d", seed), MaxPending: most})
			steps := 300
			if b.mini != nil { // which is slow
				steps = 60
			}
			for step := range steps {
				batch := names[:0:0]
				for range 1 + rnd.IntN(6) {
					batch = append(batch, names[rnd.IntN(len(names))])
				}
				if step%2 == 1 {
					b.randomly(t, rnd, batch)
					continue
				}
				b.scheduleAsExpected(t, rnd, names, batch, most)
			}
		}
	})
}

// randomly does something that is no Schedule.
func (b bed) randomly(t *testing.T, rnd *rand.Rand, batch []string) {
	ctx := t.Context()
	var leases []persist.Lease
	for _, id := range batch {
		leases = append(leases, persist.Lease{ID: id, Token: "token"})
	}
	var err error
	switch rnd.IntN(7) {
	case 0:
		_, err = b.Cancel(ctx, batch)
	case 1, 2:
		_, err = b.Claim(ctx, "token", batch, time.Hour, 0)
	case 3:
		_, err = b.Ack(ctx, leases)
	case 4:
		_, err = b.Retry(ctx, []persist.Retry{{Lease: leases[0], DueMS: past}})
	case 5:
		_, err = b.Bury(ctx, []persist.Burial{{Lease: leases[0]}})
	case 6:
		_, err = b.Requeue(ctx, batch[:1])
	}
	require.NoError(t, err)
}

// scheduleAsExpected schedules batch, and checks what came of it.
func (b bed) scheduleAsExpected(t *testing.T, rnd *rand.Rand, names, batch []string, most int64) {
	look := func() map[string]persist.Record {
		records, err := b.Lookup(t.Context(), names)
		require.NoError(t, err)
		m := map[string]persist.Record{}
		for _, r := range records {
			m[r.ID] = r
		}
		return m
	}
	depth, err := b.Depth(t.Context())
	require.NoError(t, err)
	want, pending := look(), depth.Due
	var dues []persist.Due
	var refused []int
	for i, id := range batch {
		dues = append(dues, persist.Due{ID: id, DueMS: past + rnd.Int64N(100)})
		r := want[id]
		switch {
		case r.Status == persist.StatusRunning:
			r.Successor, r.Cancelled = dues[i].DueMS, false
			want[id] = r
			continue
		case r.Status != persist.StatusDue && pending >= most:
			refused = append(refused, i)
			continue
		case r.Status != persist.StatusDue:
			pending++
		}
		want[id] = persist.Record{ID: id, Status: persist.StatusDue, DueMS: dues[i].DueMS}
	}
	err = b.Schedule(t.Context(), dues)
	require.Equal(t, len(refused) > 0, errors.Is(err, persist.ErrOverloaded), "%v", err)
	require.Equal(t, len(refused), len(persist.Missing(err, len(dues))))
	if len(refused) > 0 {
		require.Equal(t, refused, persist.Missing(err, len(dues)))
	}
	require.Equal(t, want, look())
}

func TestMaxPendingBelowZeroIsRefused(t *testing.T) {
	t.Parallel()
	_, err := persist.New(setupMini(t).client, persist.Options{MaxPending: -1})
	require.ErrorIs(t, err, persist.ErrInvalid)
	require.ErrorContains(t, err, "MaxPending is -1")
}

package persist_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/internal/faultproxy"
	"github.com/orderwheel/orderwheel/persist"
)

// sharded makes the store of a bed one of so many shards.
func (b bed) sharded(t testing.TB, shards int) bed {
	t.Helper()
	s, err := persist.New(b.client, persist.Options{Shards: shards})
	require.NoError(t, err)
	b.Redis = s
	return b
}

// byShard is what one shard has of list, for each that has some.
func byShard(shards int, list []string) map[int][]string {
	m := map[int][]string{}
	for _, id := range list {
		s := persist.ShardOf(id, shards)
		m[s] = append(m[s], id)
	}
	return m
}

// What is stored would not be found again by another rule.
func TestTheShardOfAnIDIsFixed(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]int{ // FNV-1a 32 of the id, modulo 16
		"a":                   0xe40c292c % 16,
		"foobar":              0xbf9cf968 % 16,
		"2026093012345600000": int(uint32(fnv1a("2026093012345600000")) % 16),
	} {
		require.Equal(t, want, persist.ShardOf(id, 16), "%q", id)
	}
	require.Zero(t, persist.ShardOf("foobar", 1))
}

// fnv1a is written from the definition (http://www.isthe.com/chongo/tech/comp/fnv/).
func fnv1a(s string) uint32 {
	h := uint32(2166136261)
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return h
}

func TestIDsAreSpreadEvenlyOverShards(t *testing.T) {
	t.Parallel()
	for shard, of := range byShard(16, ids("order", 16_000)) {
		require.InDelta(t, 1000, len(of), 200, "shard %d", shard)
	}
}

func TestEachShardHasKeysOfItsOwn(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		b = b.sharded(t, 4)
		list := ids("order", 40)
		b.scheduled(t, past, list...)
		for shard, of := range byShard(4, list) {
			stored, err := b.client.ZRange(t.Context(), fmt.Sprintf("{orderwheel:%d}:due", shard), 0, -1).Result()
			require.NoError(t, err)
			require.ElementsMatch(t, of, stored, "shard %d", shard)
		}
		depth, err := b.Depth(bounded(t))
		require.NoError(t, err)
		require.Equal(t, persist.Depth{Due: 40}, depth)
	})
}

func TestCheckRefusesAnotherNumberOfShards(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		_, err := b.sharded(t, 4).Check(bounded(t))
		require.NoError(t, err)
		_, err = b.sharded(t, 4).Check(bounded(t))
		require.NoError(t, err, "the same again")
		for _, other := range []int{1, 3, 16} {
			_, err = b.sharded(t, other).Check(bounded(t))
			require.ErrorIs(t, err, persist.ErrFatal)
			require.ErrorContains(t, err, fmt.Sprintf("Shards is %d, but the tasks of this namespace are stored in 4", other))
			require.ErrorContains(t, err, keyShards, "the remedy")
		}
	})
}

func TestNewRefusesANumberOfShardsThatCannotBe(t *testing.T) {
	t.Parallel()
	client := setupMini(t).client
	for _, n := range []int{-1, persist.MaxShards + 1} {
		_, err := persist.New(client, persist.Options{Shards: n})
		require.ErrorIs(t, err, persist.ErrInvalid)
		require.ErrorContains(t, err, fmt.Sprintf("Shards is %d", n))
	}
	_, err := persist.New(client, persist.Options{Shards: persist.MaxShards})
	require.NoError(t, err)
}

// Lists go to their shards in parts, and come back in their order.
func TestABatchOverShardsIsAnsweredInItsOrder(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		b = b.sharded(t, 7)
		ctx := bounded(t)
		list := ids("order", 2500)
		even, odd := everyOther(list)
		b.scheduled(t, past, even...)
		b.scheduled(t, future, odd...)

		claims, err := b.Claim(ctx, "token", list, time.Hour, 0)
		require.NoError(t, err)
		require.Len(t, claims.Claims, len(list))
		for i, c := range claims.Claims {
			require.Equal(t, list[i], c.ID)
			require.Equal(t, i%2 == 0, c.State == persist.Claimed, "%+v", c)
			require.Equal(t, i%2 == 1, c.State == persist.NotYet, "%+v", c)
		}
		require.NotZero(t, claims.NowMS)
		require.False(t, claims.Sent.IsZero())
		require.GreaterOrEqual(t, claims.Clock.StoreUS/1000, claims.NowMS)

		outcomes, err := b.Cancel(ctx, list)
		require.NoError(t, err)
		leases := make([]persist.Lease, len(list))
		for i, o := range outcomes {
			leases[i] = persist.Lease{ID: list[i], Token: "token"}
			require.Equal(t, i%2 == 0, o == persist.Running)
			require.Equal(t, i%2 == 1, o == persist.Cancelled)
		}
		renewed, err := b.Renew(ctx, leases, 2*time.Hour)
		require.NoError(t, err)
		records, err := b.Lookup(ctx, list)
		require.NoError(t, err)
		settled, err := b.Ack(ctx, leases)
		require.NoError(t, err)
		for i := range list {
			require.Equal(t, i%2 == 0, renewed[i])
			require.Equal(t, list[i], records[i].ID)
			require.Equal(t, i%2 == 0, records[i].Status == persist.StatusRunning)
			require.Equal(t, list[i], settled[i].ID)
			require.Equal(t, i%2 == 0, settled[i].State == persist.Settled)
		}
	})
}

func everyOther(list []string) (even, odd []string) {
	for i, id := range list {
		if i%2 == 0 {
			even = append(even, id)
		} else {
			odd = append(odd, id)
		}
	}
	return even, odd
}

// Window and Dead read shards as if they were one: in one order, each exactly
// once, however large the ties and the pages.
func TestPagesOverShardsAreInOneOrder(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		b = b.sharded(t, 5)
		list := ids("order", 210)
		var want []persist.Due
		for i, id := range list {
			want = append(want, persist.Due{ID: id, DueMS: past + int64(i%13)})
		}
		require.NoError(t, b.Schedule(bounded(t), want))
		slices.SortFunc(want, func(a, b persist.Due) int {
			return strings.Compare(fmt.Sprintf("%015d%s", a.DueMS, a.ID), fmt.Sprintf("%015d%s", b.DueMS, b.ID))
		})
		for _, limit := range []int{1, 7, 100, 209, 210, 211, 5000} {
			var got []persist.Due
			page := persist.Page{More: true}
			for page.More {
				var err error
				page, err = b.Window(bounded(t), page.Next, future, limit)
				require.NoError(t, err)
				require.LessOrEqual(t, len(page.Due), limit)
				require.NotEmpty(t, page.Due)
				require.NotZero(t, page.Clock.StoreUS)
				got = append(got, page.Due...)
			}
			require.Equal(t, want, got, "pages of %d", limit)
		}
		page, err := b.Window(bounded(t), persist.Cursor{}, past+3, 5000)
		require.NoError(t, err)
		require.False(t, page.More)
		require.Len(t, page.Due, 2*17+2*16, "up to the bound")

		burials := make([]persist.Burial, len(list))
		b.claimed(t, "token", time.Hour, list...)
		for i, id := range list {
			burials[i] = persist.Burial{Lease: persist.Lease{ID: id, Token: "token"}, Reason: id}
		}
		_, err = b.Bury(bounded(t), burials)
		require.NoError(t, err)
		var dead []string
		for next, more := (persist.Cursor{}), true; more; {
			page, err := b.Dead(bounded(t), next, 90)
			require.NoError(t, err)
			for _, d := range page.Dead {
				require.Equal(t, d.ID, d.Reason)
				dead = append(dead, d.ID)
			}
			next, more = page.Next, page.More
		}
		require.ElementsMatch(t, list, dead)
	})
}

// ofShard is a rule for the script calls of one shard.
func ofShard(shard int, rule faultproxy.Rule) faultproxy.Rule {
	return func(c faultproxy.Command) faultproxy.Action {
		if strings.HasSuffix(c.Words[3], fmt.Sprintf(":%d}:due", shard)) {
			return rule(c)
		}
		return pass
	}
}

// A shard whose server does not answer fails its own ids, and holds up no others.
func TestAShardThatIsAwayHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	const shards, away = 4, 2
	list := ids("order", 200)
	of := byShard(shards, list)[away]
	var missing []int
	for i, id := range list {
		if slices.Contains(of, id) {
			missing = append(missing, i)
		}
	}
	leases := make([]persist.Lease, len(list))
	for i, id := range list {
		leases[i] = persist.Lease{ID: id, Token: "token"}
	}
	b, p := behindProxy(t, setupReal(t))
	plain := b.sharded(t, shards)
	var err error
	b.Redis, err = persist.New(p.client(t), persist.Options{Shards: shards})
	require.NoError(t, err)
	for name, fault := range map[string]faultproxy.Rule{
		"it answers LOADING":        func(faultproxy.Command) faultproxy.Action { return errorReply("LOADING it is") },
		"it does not answer at all": func(faultproxy.Command) faultproxy.Action { return faultproxy.Do(faultproxy.Hang) },
		"it closes each connection": func(faultproxy.Command) faultproxy.Action { return notSent },
	} {
		t.Log(name)
		plain.scheduled(t, past, list...)
		p.decide(ofShard(away, fault))
		some := func() (context.Context, func()) {
			return context.WithTimeout(t.Context(), 500*time.Millisecond)
		}
		requirePartial := func(err error, answers int) {
			t.Helper()
			var partial *persist.PartialError
			require.ErrorAs(t, err, &partial)
			require.Equal(t, missing, partial.Missing)
			require.Equal(t, missing, persist.Missing(err, len(list)))
			require.ErrorIs(t, err, persist.ErrRetryable)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorContains(t, err, fmt.Sprintf("shard %d", away))
			require.Len(t, list, answers)
		}
		answered := func(i int) bool { return !slices.Contains(missing, i) }

		ctx, cancel := some()
		claims, err := b.Claim(ctx, "token", list, time.Hour, 0)
		cancel()
		requirePartial(err, len(claims.Claims))
		for i, c := range claims.Claims {
			require.Equal(t, answered(i), c.State == persist.Claimed)
		}
		ctx, cancel = some()
		settled, err := b.Ack(ctx, leases)
		cancel()
		requirePartial(err, len(settled))
		for i, s := range settled {
			require.Equal(t, answered(i), s.State == persist.Settled)
		}
		ctx, cancel = some()
		dues := make([]persist.Due, len(list))
		for i, id := range list {
			dues[i] = persist.Due{ID: id, DueMS: past + 7}
		}
		err = b.Schedule(ctx, dues)
		cancel()
		requirePartial(err, len(list))
		ctx, cancel = some()
		page, err := b.Window(ctx, persist.Cursor{}, future, 1000)
		cancel()
		require.ErrorIs(t, err, persist.ErrRetryable)
		require.Len(t, page.Due, len(list)-len(of), "what could be read")
		require.Zero(t, page.Next, "to be read again")

		p.decide(nil)
		page, err = b.Window(bounded(t), persist.Cursor{}, future, 1000)
		require.NoError(t, err)
		require.Len(t, page.Due, len(list), "nothing is lost, nothing stands twice")
		_, err = b.Cancel(bounded(t), list)
		require.NoError(t, err)
	}
}

func TestMissing(t *testing.T) {
	t.Parallel()
	require.Empty(t, persist.Missing(nil, 3))
	require.Equal(t, []int{0, 1, 2}, persist.Missing(errors.New("any other"), 3))
	partial := &persist.PartialError{Missing: []int{1}, Err: persist.ErrDegraded}
	require.Equal(t, []int{1}, persist.Missing(fmt.Errorf("wrapped: %w", partial), 3))
	require.Empty(t, persist.Missing(fmt.Errorf("wrapped: %w", persist.ErrNotReplicated), 3))
}

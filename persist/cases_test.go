package persist_test

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/internal/faultproxy"
	"github.com/orderwheel/orderwheel/persist"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// Cases of cases.md that have no better place. caselist_test.go says where the others are.

// Case 39.
func TestFiveInstancesClaimEachTaskOnce(t *testing.T) {
	t.Parallel()
	b := setupReal(t)
	const tasks = 10_000
	all := ids("x", tasks)
	b.scheduled(t, past, all...)
	var mu sync.Mutex
	runs := make(map[string]int, tasks)
	var wg sync.WaitGroup
	for instance := range 5 {
		store := newStore(t, b.server.Client(t))
		wg.Go(func() {
			token := func(n int) string { return fmt.Sprintf("i%d-%d", instance, n) }
			// Each has seen all of them, and begins somewhere else.
			for n := range tasks / 500 {
				at := (n*500 + instance*100) % tasks
				mine := append(append([]string{}, all[at:min(at+500, tasks)]...), all[:max(0, at+500-tasks)]...)
				got, err := store.Claim(t.Context(), token(n), mine, time.Hour, 0)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for _, c := range got.Claims {
					if c.State == persist.Claimed {
						runs[c.ID]++
					}
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.Len(t, runs, tasks)
	for id, n := range runs {
		require.Equal(t, 1, n, id)
	}
}

// Case 66. (Not on miniredis, which sorts a whole set for every read of it.)
func TestTwentyThousandDueAtOnceAreNoError(t *testing.T) {
	t.Parallel()
	b := setupReal(t)
	ctx := t.Context()
	const tasks = 20_000
	all := ids("x", tasks)
	b.scheduled(t, past, all...)
	page, err := b.Window(ctx, persist.Cursor{}, past, tasks)
	require.NoError(t, err)
	require.Len(t, page.Due, tasks)
	require.False(t, page.More)

	b.claimed(t, "tok", time.Millisecond, all...)
	b.waitFor(t, b.nowMS(t)+1)
	reaped, err := b.Reap(ctx, tasks)
	require.NoError(t, err)
	require.Len(t, reaped, tasks)

	b.claimed(t, "tok2", time.Hour, all...)
	retries := make([]persist.Retry, tasks)
	leases := make([]persist.Lease, tasks)
	for i, id := range all {
		leases[i] = persist.Lease{ID: id, Token: "tok2"}
		retries[i] = persist.Retry{Lease: leases[i], DueMS: past}
	}
	settlements, err := b.Retry(ctx, retries)
	require.NoError(t, err)
	require.Len(t, settlements, tasks)
	b.claimed(t, "tok2", time.Hour, all...)
	settlements, err = b.Ack(ctx, leases)
	require.NoError(t, err)
	for i, s := range settlements {
		require.Equal(t, persist.Settlement{ID: all[i], State: persist.Settled}, s)
	}
	b.requireEmpty(t)
}

// Case 68: no call may cost more because more is pending. Counted are the commands that
// Redis ran and, for those that take a range, what they returned.
func TestNoCommandCostsMoreBecauseMoreIsPending(t *testing.T) {
	t.Parallel()
	b := setupReal(t)
	ctx := t.Context()
	cheap := map[string]bool{ // O(1) or O(log n) for each id; HSCAN has a COUNT
		"zadd": true, "zrem": true, "zmscore": true, "zcount": true,
		"hset": true, "hget": true, "hdel": true, "hmget": true, "hscan": true, "time": true, "zcard": true, "hlen": true,
		"zrange": true, "zrangebyscore": true, // by index and with LIMIT, see below
		"eval": true, "evalsha": true,
	}
	b.scheduled(t, future, ids("far", 20_000)...)
	b.scheduled(t, past, ids("due", 50)...)
	b.died(t, past, ids("dead", 20_000)...)
	do(t, b.client, "CONFIG", "RESETSTAT")

	one, err := b.Cancel(ctx, []string{"far-000777"})
	require.NoError(t, err)
	require.Equal(t, persist.Cancelled, one[0])
	_, err = b.Window(ctx, persist.Cursor{DueMS: future, ID: "far-010000"}, persist.MaxDueMS, 10)
	require.NoError(t, err)
	b.claimed(t, "tok", time.Hour, ids("due", 50)...)
	_, err = b.Ack(ctx, []persist.Lease{{ID: "due-000001", Token: "tok"}})
	require.NoError(t, err)
	_, err = b.Retry(ctx, []persist.Retry{{Lease: persist.Lease{ID: "due-000002", Token: "tok"}, DueMS: past}})
	require.NoError(t, err)
	_, err = b.Reap(ctx, 100)
	require.NoError(t, err)
	b.scheduled(t, past, "new")
	_, err = b.Renew(ctx, []persist.Lease{{ID: "due-000003", Token: "tok"}}, time.Hour)
	require.NoError(t, err)
	_, err = b.Bury(ctx, []persist.Burial{{Lease: persist.Lease{ID: "due-000004", Token: "tok"}, Reason: "broken"}})
	require.NoError(t, err)
	_, err = b.Dead(ctx, persist.Cursor{DueMS: past, ID: "dead-010000"}, 10)
	require.NoError(t, err)
	_, err = b.Requeue(ctx, []string{"dead-000777"})
	require.NoError(t, err)
	_, err = b.Discard(ctx, []string{"dead-000778"})
	require.NoError(t, err)
	_, err = b.Lookup(ctx, []string{"far-000001"})
	require.NoError(t, err)
	_, err = b.Depth(ctx)
	require.NoError(t, err)

	calls := map[string]int{}
	for line := range strings.Lines(b.client.Info(ctx, "commandstats").Val()) {
		name, stats, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if !ok || name == "config|resetstat" || name == "info" || name == "hello" || strings.HasPrefix(name, "client|") { // ours, and a new connection's
			continue
		}
		require.True(t, cheap[name], "%s", name)
		var n int
		_, err := fmt.Sscanf(stats, "%d,", &n)
		require.NoError(t, err)
		calls[name] = n
	}
	require.LessOrEqual(t, calls["zrange"], 2*(2+15), "two bisections of 20,000, two pages, and a look by score")
	require.LessOrEqual(t, calls["evalsha"]+calls["eval"], 2*14)
}

// Case 136: the same scripts run on both; onBoth is the test. This one pins the
// commands whose forms miniredis had wrong once.
func TestReapAndWindowReadRangesAlikeOnBoth(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		b.scheduled(t, past, "a", "b", "c")
		b.claimed(t, "tok", time.Hour, "b")
		do(t, b.client, "ZADD", keyRunning, 1, "b")
		reaped, err := b.Reap(t.Context(), 10)
		require.NoError(t, err)
		require.Len(t, reaped, 1)
		page, err := b.Window(t.Context(), persist.Cursor{DueMS: past, ID: "a"}, past, 10)
		require.NoError(t, err)
		require.Equal(t, []persist.Due{{ID: "c", DueMS: past}}, page.Due)
	})
}

// Case 115: a late retry must not bring back what has moved on. (A nil in Lua is false.)
func TestALateRetryIsRefused(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		overdue(t, b, func() {})
		_, err := b.Reap(t.Context(), 1)
		require.NoError(t, err)
		b.claimed(t, "tok2", time.Hour, "x")
		require.Equal(t, persist.Refused, retryX(t, b, persist.Retry{DueMS: past}).State)
		require.Equal(t, persist.Settled, ackX(t, b, "tok2").State)
		require.Equal(t, persist.Refused, retryX(t, b, persist.Retry{DueMS: past}).State)
		b.requireEmpty(t)
	})
}

// Case 114: what was cancelled can be scheduled again at once.
func TestACancelledIDCanBeScheduledAgain(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		for range 3 {
			b.scheduled(t, past, "x")
			require.Equal(t, persist.Cancelled, cancelX(t, b))
		}
		b.scheduled(t, past, "x")
		require.Equal(t, 1, b.claimed(t, "tok", time.Hour, "x")[0].Attempt)
	})
}

// Cases 48 and 61: when a task is due depends neither on whether somebody was there, nor on how long a
// restart took.
func TestWhatFellDueWhileNobodyWasThereIsDue(t *testing.T) {
	t.Parallel()
	b := setupReal(t, "--appendonly", "yes", "--appendfsync", "always")
	soon := b.nowMS(t) + 20
	b.scheduled(t, soon, "x")
	b.scheduled(t, future, "later")
	b.scheduled(t, past, "retried")
	b.claimed(t, "tok", time.Hour, "retried")
	_, err := b.Retry(t.Context(), []persist.Retry{{Lease: persist.Lease{ID: "retried", Token: "tok"}, DueMS: soon}})
	require.NoError(t, err)
	before := b.stored(t)
	b.server.Restart()
	require.Equal(t, before, b.stored(t), "no due time has moved")
	b.waitFor(t, soon)
	require.EqualValues(t, soon, b.claimed(t, "tok", time.Hour, "x")[0].FirstDueMS)
}

// Case 46: of a batch in which one fails, that one is repeated and no other.
func TestOneFailedOfAHundredIsRetriedAlone(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		all := ids("x", 100)
		b.scheduled(t, past, all...)
		b.claimed(t, "tok", time.Hour, all...)
		done := make([]persist.Lease, len(all))
		for i, id := range all {
			done[i] = persist.Lease{ID: id, Token: "tok"}
		}
		done[37].Token = "stale" // likewise one that is refused
		settlements, err := b.Ack(t.Context(), done)
		require.NoError(t, err)
		for i, s := range settlements {
			want := persist.Settlement{ID: all[i], State: persist.Settled}
			if i == 37 {
				want.State = persist.Refused
			}
			require.Equal(t, want, s)
		}
		_, err = b.Retry(t.Context(), []persist.Retry{{Lease: persist.Lease{ID: all[37], Token: "tok"}, DueMS: past}})
		require.NoError(t, err)
		got, err := b.Claim(t.Context(), "tok2", all, time.Hour, 0)
		require.NoError(t, err)
		for i, c := range got.Claims {
			want := persist.Claim{ID: all[i], State: persist.Gone}
			if i == 37 {
				want = persist.Claim{ID: all[i], State: persist.Claimed, Attempt: 2, FirstDueMS: past}
			}
			require.Equal(t, want, c)
		}
	})
}

// Case 47: nothing of ours has a TTL, or is given up for being old.
func TestAnOutageOfEightDaysDropsNothing(t *testing.T) {
	t.Parallel()
	b := setupMini(t)
	now := time.UnixMilli(2_000_000_000_000)
	b.mini.SetTime(now)
	b.scheduled(t, now.UnixMilli(), "due", "retried", "runs", "dead")
	b.claimed(t, "tok", time.Minute, "retried", "runs", "dead")
	lease := func(id string) persist.Lease { return persist.Lease{ID: id, Token: "tok"} }
	_, err := b.Retry(t.Context(), []persist.Retry{{Lease: lease("retried"), DueMS: now.UnixMilli()}})
	require.NoError(t, err)
	_, err = b.Bury(t.Context(), []persist.Burial{{Lease: lease("dead"), Reason: "broken"}})
	require.NoError(t, err)
	before := b.stored(t)

	b.mini.FastForward(8 * 24 * time.Hour) // of all that has a TTL
	now = now.Add(8 * 24 * time.Hour)
	b.mini.SetTime(now)
	b.Redis = newStore(t, b.client)
	_, err = b.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, before, b.stored(t))
	reaped, err := b.Reap(t.Context(), 10)
	require.NoError(t, err)
	require.Equal(t, []persist.Due{{ID: "runs", DueMS: now.UnixMilli()}}, reaped)
	page, err := b.Window(t.Context(), persist.Cursor{}, now.UnixMilli(), 10)
	require.NoError(t, err)
	require.Len(t, page.Due, 3)
	b.claimed(t, "tok2", time.Hour, "due", "retried", "runs")
	require.Equal(t, "broken", b.allDead(t)[0].Reason)
}

// Case 93, of a store: neither a connection nor a session is left. (Nor a goroutine: see TestMain.)
func TestAHundredStoresLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	b := setupReal(t)
	for i := range 100 {
		c := redis.NewClient(&redis.Options{Addr: b.server.Addr(), ContextTimeoutEnabled: true})
		store := newStore(t, c)
		_, err := store.Check(bounded(t))
		require.NoError(t, err)
		require.NoError(t, store.Schedule(bounded(t), []persist.Due{{ID: fmt.Sprint(i), DueMS: past}}))
		_, err = store.Claim(bounded(t), "tok", []string{fmt.Sprint(i)}, time.Hour, 0)
		require.NoError(t, err)
		_, err = store.Ack(bounded(t), []persist.Lease{{ID: fmt.Sprint(i), Token: "tok"}})
		require.NoError(t, err)
		require.NoError(t, store.Close(bounded(t)))
		require.NoError(t, c.Close())
	}
	require.Equal(t, []string{keyShards}, b.client.Keys(t.Context(), "*").Val())
	for ctx := bounded(t); !strings.Contains(b.client.Info(ctx, "clients").Val(), "connected_clients:1\r\n"); {
		require.NoError(t, ctx.Err(), "the server still has their connections")
	}
}

// Case 85: a Sentinel that is there and does not answer costs one DialTimeout, and keeps nobody from
// the others.
func TestADeadSentinelDoesNotEatTheDeadline(t *testing.T) {
	t.Parallel()
	b := setupMini(t)
	dead := faultproxy.Start(t, b.client.Options().Addr)
	dead.SetWelcome(func(int) faultproxy.Welcome { return faultproxy.HangAtOnce })
	host, port, err := net.SplitHostPort(b.client.Options().Addr)
	require.NoError(t, err)
	sentinel := faultproxy.Start(t, b.client.Options().Addr) // speaks for one, as far as a client asks
	sentinel.SetRule(func(c faultproxy.Command) faultproxy.Action {
		switch {
		case c.Name() == "subscribe":
			return faultproxy.Do(faultproxy.Hang) // no news
		case c.Name() != "sentinel":
			return faultproxy.Action{}
		case strings.EqualFold(c.Words[1], "get-master-addr-by-name"):
			return faultproxy.Answer(fmt.Sprintf("*2\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(host), host, len(port), port))
		}
		return faultproxy.Answer("*0\r\n") // knows no other
	})
	for _, addrs := range [][]string{{dead.Addr(), sentinel.Addr()}, {sentinel.Addr(), dead.Addr()}} {
		c := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "shop", SentinelAddrs: addrs, ContextTimeoutEnabled: true, DialTimeout: 100 * time.Millisecond})
		t.Cleanup(func() { _ = c.Close() })
		store := newStore(t, c)
		_, err := store.Check(bounded(t))
		require.NoError(t, err)
		require.NoError(t, store.Schedule(bounded(t), []persist.Due{{ID: "x", DueMS: past}}))
		require.Equal(t, persist.Cancelled, cancelX(t, b))
	}
	require.Positive(t, dead.Counts().Conns, "it was asked")
}

// Case 107: never early, not by one millisecond.
func TestNothingIsClaimedBeforeItsMillisecond(t *testing.T) {
	t.Parallel()
	b := setupMini(t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)
	b.scheduled(t, at.UnixMilli(), "x")
	for _, before := range []time.Duration{time.Microsecond, 999 * time.Microsecond, time.Millisecond, time.Hour} {
		b.mini.SetTime(at.Add(-before))
		got, err := b.Claim(t.Context(), "tok", []string{"x"}, time.Hour, 0)
		require.NoError(t, err)
		require.Equal(t, persist.NotYet, got.Claims[0].State)
		require.Equal(t, max(1, ceil(before)), got.Claims[0].LeftMS)
	}
	b.mini.SetTime(at)
	b.claimed(t, "tok", time.Hour, "x")
}

func ceil(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

// On a real clock: a claim in a loop gets the task only once the clock has reached it.
func TestNothingIsClaimedBeforeItsMillisecondByTheClockOfRedis(t *testing.T) {
	t.Parallel()
	b := setupReal(t)
	for i := range 20 {
		at := b.nowMS(t) + 3
		id := fmt.Sprint(i)
		b.scheduled(t, at, id)
		for ctx := bounded(t); ; {
			require.NoError(t, ctx.Err())
			got, err := b.Claim(ctx, "tok", []string{id}, time.Hour, 0)
			require.NoError(t, err)
			c := got.Claims[0]
			if c.State == persist.Claimed {
				require.GreaterOrEqual(t, got.NowMS, at)
				require.Equal(t, got.Clock.StoreUS/1000, got.NowMS)
				break
			}
			require.Equal(t, persist.NotYet, c.State)
			require.Less(t, got.NowMS, at)
			require.Equal(t, at-got.NowMS, c.LeftMS)
		}
	}
}

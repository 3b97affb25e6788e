package persist_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/persist"
	"github.com/stretchr/testify/require"
)

// Cases of cases.md that have no better place. Where the others of its sections
// "Persistence, recovery, claims" and "Lua, ZSet, Redis, go-redis" stand:
//
//   - here in other files: 35, 58, 78, 94, 135 (faults_test.go); 83, 84, 88, 89, 90,
//     82 (outage_test.go, dead_faults_test.go); 42, 70 (window_test.go); 55 (heal_test.go);
//     53 (dead_heal_test.go); 71, 139 (digits_test.go, dead_digits_test.go); 73, 74 (check_test.go);
//     79, 80 (lookup_test.go); 123, of the next section (dead_test.go)
//   - with the engine, since they are about its loops, its restart or its lateness: 32, 34, 36,
//     37, 40, 46 (per id, there is nothing here that repeats a batch), 47, 48, 50, 61, 63, 64, 69
//   - with the epoch and the reconciler: 52
//   - with WaitReplicas: 59, 60, 140
//   - on real Clusters, replicas and Sentinels: 76, 138 (cluster_test.go); 84, 85 (failover_test.go)
//   - with the soak: 92, 93
//   - nothing to do, there are no payloads: 45, 56

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

// Case 61-like: the time a task is due does not depend on whether somebody was there.
func TestWhatFellDueWhileNobodyWasThereIsDue(t *testing.T) {
	t.Parallel()
	b := setupReal(t, "--appendonly", "yes", "--appendfsync", "always")
	soon := b.nowMS(t) + 20
	b.scheduled(t, soon, "x")
	b.server.Restart()
	b.waitFor(t, soon)
	require.EqualValues(t, soon, b.claimed(t, "tok", time.Hour, "x")[0].FirstDueMS)
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

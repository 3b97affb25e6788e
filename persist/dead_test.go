package persist_test

import (
	"strings"
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/persist"
	"github.com/stretchr/testify/require"
)

// The lines of the table that lead to the dead and back.

func buryX(t *testing.T, b bed, token, reason string) persist.Settlement {
	t.Helper()
	got, err := b.Bury(bounded(t), []persist.Burial{{Lease: persist.Lease{ID: "x", Token: token}, Reason: reason}})
	require.NoError(t, err)
	require.Equal(t, "x", got[0].ID)
	return got[0]
}

func requeueX(t *testing.T, b bed) persist.Settlement {
	t.Helper()
	got, err := b.Requeue(bounded(t), []string{"x"})
	require.NoError(t, err)
	require.Equal(t, "x", got[0].ID)
	return got[0]
}

func discardX(t *testing.T, b bed) bool {
	t.Helper()
	got, err := b.Discard(bounded(t), []string{"x"})
	require.NoError(t, err)
	return got[0]
}

func lookupX(t *testing.T, b bed) persist.Record {
	t.Helper()
	got, err := b.Lookup(bounded(t), []string{"x"})
	require.NoError(t, err)
	require.Equal(t, "x", got[0].ID)
	return got[0]
}

// allDead reads one page that has them all.
func (b bed) allDead(t *testing.T) []persist.Dead {
	t.Helper()
	page, err := b.Dead(bounded(t), persist.Cursor{}, 100_000)
	require.NoError(t, err)
	require.False(t, page.More)
	return page.Dead
}

func TestBuryNeedsTheTokenAndGivesWayToSuccessorAndCancel(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		settled := persist.Settlement{ID: "x", State: persist.Settled}
		refused := persist.Settlement{ID: "x", State: persist.Refused}
		successor := persist.Settlement{ID: "x", State: persist.Scheduled, DueMS: future}
		for _, line := range []struct {
			from, token   string
			want          persist.Settlement
			where, record string
		}{
			{"gone", "tok", refused, "gone", ""},
			{"due", "tok", refused, "due 1000", ""},
			{"retry", "tok", refused, "due 2000", "- 1 - 1000 -"},
			{"lost", "tok", refused, "due 2000", "- 1 l 1000 -"},
			{"dead", "tok", refused, "dead", "1 1000 broken"},
			{"run", "old", refused, "running", "tok 1 - 1000 -"},
			{"run", "", refused, "running", "tok 1 - 1000 -"},
			{"run", "-", refused, "running", "tok 1 - 1000 -"},
			{"run", "tok", settled, "dead", "1 1000 new reason"},
			{"run+c", "tok", settled, "gone", ""},
			{"run+sc", "tok", settled, "gone", ""},
			{"run+s", "tok", successor, "due 4000000000000", ""},
			{"run+cs", "tok", successor, "due 4000000000000", ""},
		} {
			b.client.FlushAll(t.Context())
			start(t, b, line.from)
			require.Equal(t, line.want, buryX(t, b, line.token, "new reason"), line.from)
			where, record := left(t, b)
			require.Equal(t, line.where, where, line.from)
			require.Equal(t, line.record, record, line.from)
		}
	})
}

func TestADeadTaskTellsWhenAndWhyItDied(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		start(t, b, "retry")
		b.claimed(t, "tok2", time.Hour, "x")
		before := b.nowMS(t)
		buryX(t, b, "tok2", "no such order: 404 Not Found")
		after := b.nowMS(t)
		dead := b.allDead(t)
		require.Len(t, dead, 1)
		buried := dead[0].BuriedMS
		require.True(t, before <= buried && buried <= after, "buried at %d, between %d and %d", buried, before, after)
		require.Equal(t, persist.Dead{ID: "x", BuriedMS: buried, FirstDueMS: past, Attempt: 2, Reason: "no such order: 404 Not Found"}, dead[0])
	})
}

func TestAClaimOverTheLimitIsBuried(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		claimed := func(attempt int) persist.Claim {
			return persist.Claim{State: persist.Claimed, Attempt: attempt, FirstDueMS: past}
		}
		buried := persist.Claim{State: persist.Buried}
		for _, line := range []struct {
			from, token   string
			most          int
			want          persist.Claim
			where, record string
		}{
			{"due", "new", 1, claimed(1), "running", "new 1 - 1000 -"},
			{"retry", "new", 0, claimed(2), "running", "new 2 - 1000 -"},
			{"retry", "new", 2, claimed(2), "running", "new 2 - 1000 -"},
			{"retry", "new", 1, buried, "dead", "1 1000 attempt 2 of at most 1"},
			{"lost", "new", 1, buried, "dead", "1 1000 attempt 2 of at most 1"},
			{"run", "tok", 1, claimed(1), "running", "tok 1 - 1000 -"}, // the same claim again
			{"run", "new", 1, persist.Claim{State: persist.Busy}, "running", "tok 1 - 1000 -"},
			{"dead", "new", 1, persist.Claim{State: persist.Gone}, "dead", "1 1000 broken"},
			{"gone", "new", 1, persist.Claim{State: persist.Gone}, "gone", ""},
		} {
			b.client.FlushAll(t.Context())
			start(t, b, line.from)
			got, err := b.Claim(t.Context(), line.token, []string{"x"}, time.Minute, line.most)
			require.NoError(t, err)
			line.want.ID = "x"
			require.Equal(t, line.want, got.Claims[0], line.from)
			where, record := left(t, b)
			require.Equal(t, line.where, where, line.from)
			require.Equal(t, line.record, record, line.from)
			if line.want.State == persist.Buried {
				require.Equal(t, got.NowMS, lookupX(t, b).BuriedMS)
			}
		}
	})
}

func TestWhatIsOverTheLimitIsBuriedOnlyWhenItIsDue(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		start(t, b, "run")
		retryX(t, b, persist.Retry{DueMS: future})
		got, err := b.Claim(t.Context(), "new", []string{"x"}, time.Minute, 1)
		require.NoError(t, err)
		require.Equal(t, persist.NotYet, got.Claims[0].State)
		where, _ := left(t, b)
		require.Equal(t, "due 4000000000000", where)
	})
}

// A task whose every run kills its process: nobody settles it, its lease ends, and it is
// claimed again, but not for ever.
func TestATaskThatKillsItsProcessIsBuriedToo(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		b.scheduled(t, past, "x")
		if b.mini != nil {
			b.mini.SetTime(time.UnixMilli(2_000_000_000_000))
		}
		for attempt := 1; attempt <= 3; attempt++ {
			got, err := b.Claim(t.Context(), "tok"+strings.Repeat("k", attempt), []string{"x"}, time.Millisecond, 3)
			require.NoError(t, err)
			require.Equal(t, persist.Claim{ID: "x", State: persist.Claimed, Attempt: attempt, FirstDueMS: past}, got.Claims[0])
			b.waitFor(t, b.nowMS(t)+1)
			reaped, err := b.Reap(t.Context(), 1)
			require.NoError(t, err)
			require.Len(t, reaped, 1)
		}
		got, err := b.Claim(t.Context(), "last", []string{"x", "x"}, time.Millisecond, 3)
		require.NoError(t, err)
		require.Equal(t, persist.Buried, got.Claims[0].State)
		require.Equal(t, persist.Gone, got.Claims[1].State, "as if asked after the first")
		_, record := left(t, b)
		require.Equal(t, "3 1000 attempt 4 of at most 3", record)
	})
}

func TestABurialTakesTheMarkOfTheLostAway(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		start(t, b, "lost")
		b.claimed(t, "tok2", time.Hour, "x")
		require.Equal(t, persist.Settled, buryX(t, b, "tok2", "").State)
		require.Equal(t, persist.Scheduled, requeueX(t, b).State)
		require.Equal(t, persist.Cancelled, cancelX(t, b))
		b.requireEmpty(t)
	})
}

func TestRequeueMakesTheDeadDueNowAndAfresh(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		for _, line := range []struct{ from, where, record string }{
			{"gone", "gone", ""},
			{"due", "due 1000", ""},
			{"later", "due 4000000000000", ""},
			{"retry", "due 2000", "- 1 - 1000 -"},
			{"run", "running", "tok 1 - 1000 -"},
			{"run+s", "running", "tok 1 - 1000 4000000000000"},
		} {
			b.client.FlushAll(t.Context())
			start(t, b, line.from)
			require.Equal(t, persist.Settlement{ID: "x", State: persist.Refused}, requeueX(t, b), line.from)
			where, record := left(t, b)
			require.Equal(t, line.where, where, line.from)
			require.Equal(t, line.record, record, line.from)
		}
		b.client.FlushAll(t.Context())
		start(t, b, "dead")
		before := b.nowMS(t)
		got := requeueX(t, b)
		require.Equal(t, persist.Scheduled, got.State)
		require.True(t, before <= got.DueMS && got.DueMS <= b.nowMS(t), "due now")
		require.Equal(t, persist.Record{ID: "x", Status: persist.StatusDue, DueMS: got.DueMS}, lookupX(t, b))
		require.Equal(t, persist.Refused, requeueX(t, b).State, "it is due already")
		c := b.claimed(t, "tok2", time.Hour, "x")[0] // at once: it is not a millisecond ahead
		require.Equal(t, persist.Claim{ID: "x", State: persist.Claimed, Attempt: 1, FirstDueMS: got.DueMS}, c)
		require.Equal(t, persist.Settled, ackX(t, b, "tok2").State)
		b.requireEmpty(t)
	})
}

func TestDiscardForgetsTheDeadAndNobodyElse(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		for _, from := range []string{"gone", "due", "later", "retry", "lost", "run", "run+c", "run+s"} {
			b.client.FlushAll(t.Context())
			start(t, b, from)
			before := b.stored(t)
			require.False(t, discardX(t, b), from)
			require.Equal(t, before, b.stored(t), from)
		}
		b.client.FlushAll(t.Context())
		start(t, b, "dead")
		require.True(t, discardX(t, b))
		b.requireEmpty(t)
		require.False(t, discardX(t, b))
	})
}

func TestScheduleBringsTheDeadBackToLife(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		start(t, b, "dead")
		b.scheduled(t, past, "x")
		require.Empty(t, b.allDead(t))
		require.Equal(t, 1, b.claimed(t, "tok2", time.Hour, "x")[0].Attempt)
		require.Equal(t, persist.Settled, ackX(t, b, "tok2").State)
		b.requireEmpty(t)
	})
}

func TestTheDeadMayStandInABatchMoreThanOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		start(t, b, "run")
		l := persist.Lease{ID: "x", Token: "tok"}
		renewed, err := b.Renew(t.Context(), []persist.Lease{l, l, {ID: "x", Token: "old"}}, time.Hour)
		require.NoError(t, err)
		require.Equal(t, []bool{true, true, false}, renewed)
		got, err := b.Bury(t.Context(), []persist.Burial{{Lease: l, Reason: "first"}, {Lease: l, Reason: "second"}})
		require.NoError(t, err)
		require.Equal(t, persist.Settled, got[0].State)
		require.Equal(t, persist.Refused, got[1].State)
		require.Equal(t, "first", lookupX(t, b).Reason)
		got, err = b.Requeue(t.Context(), []string{"x", "y", "x"})
		require.NoError(t, err)
		require.Equal(t, persist.Scheduled, got[0].State)
		require.Equal(t, persist.Settlement{ID: "y", State: persist.Refused}, got[1])
		require.Equal(t, persist.Refused, got[2].State)

		b.client.FlushAll(t.Context())
		start(t, b, "dead")
		discarded, err := b.Discard(t.Context(), []string{"y", "x", "x"})
		require.NoError(t, err)
		require.Equal(t, []bool{false, true, false}, discarded)
		b.requireEmpty(t)
	})
}

func TestAReasonMayHaveAnyBytesAndIsCut(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		for _, reason := range append(oddReasons, strings.Repeat("\x00", 2*persist.MaxReasonLen)) {
			start(t, b, "run")
			require.Equal(t, persist.Settled, buryX(t, b, "tok", reason).State)
			want := reason[:min(len(reason), persist.MaxReasonLen)]
			require.Equal(t, want, b.allDead(t)[0].Reason)
			require.Equal(t, want, lookupX(t, b).Reason)
			require.True(t, discardX(t, b))
		}
		b.requireEmpty(t)
	})
}

// Batches of more than one call, and more than one unpack of Lua.
func TestManyAreBuriedRenewedRequeuedAndDiscarded(t *testing.T) {
	t.Parallel()
	b := setupReal(t)
	ctx := t.Context()
	const tasks = 2*persist.MaxBatch + 500
	all := ids("x", tasks)
	b.scheduled(t, past, all...)
	b.claimed(t, "tok", time.Minute, all...)
	leases := make([]persist.Lease, tasks)
	burials := make([]persist.Burial, tasks)
	for i, id := range all {
		leases[i] = persist.Lease{ID: id, Token: "tok"}
		burials[i] = persist.Burial{Lease: leases[i], Reason: strings.Repeat(id, 200)}
	}
	renewed, err := b.Renew(ctx, leases, time.Hour)
	require.NoError(t, err)
	require.Len(t, renewed, tasks)
	require.NotContains(t, renewed, false)
	_, err = b.Bury(ctx, burials)
	require.NoError(t, err)
	depth, err := b.Depth(ctx)
	require.NoError(t, err)
	require.Equal(t, persist.Depth{Dead: tasks}, depth)
	require.Len(t, b.allDead(t), tasks)
	records, err := b.Lookup(ctx, all)
	require.NoError(t, err)
	for i, r := range records {
		require.Equal(t, all[i], r.ID)
		require.Equal(t, burials[i].Reason[:persist.MaxReasonLen], r.Reason)
	}
	requeued, err := b.Requeue(ctx, all[:tasks/2])
	require.NoError(t, err)
	require.Len(t, requeued, tasks/2)
	discarded, err := b.Discard(ctx, all)
	require.NoError(t, err)
	for i, yes := range discarded {
		require.Equal(t, i >= tasks/2, yes)
	}
	depth, err = b.Depth(ctx)
	require.NoError(t, err)
	require.Equal(t, persist.Depth{Due: tasks / 2}, depth)
	outcomes, err := b.Cancel(ctx, all[:tasks/2])
	require.NoError(t, err)
	require.NotContains(t, outcomes, persist.NotFound)
	b.requireEmpty(t)
}

// Case 123: what is dead stays dead, also over restarts of Redis.
func TestTheDeadDoNotRunAfterARestart(t *testing.T) {
	t.Parallel()
	b := setupReal(t, "--appendonly", "yes", "--appendfsync", "always")
	start(t, b, "dead")
	for range 3 {
		b.server.Restart()
		page, err := b.Window(bounded(t), persist.Cursor{}, persist.MaxDueMS, 10)
		require.NoError(t, err)
		require.Empty(t, page.Due)
		reaped, err := b.Reap(bounded(t), 10)
		require.NoError(t, err)
		require.Empty(t, reaped)
		got, err := b.Claim(bounded(t), "new", []string{"x"}, time.Hour, 0)
		require.NoError(t, err)
		require.Equal(t, persist.Gone, got.Claims[0].State)
	}
	require.Equal(t, "broken", b.allDead(t)[0].Reason)
}

package persist_test

import (
	"context"
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/internal/faultproxy"
	"github.com/orderwheel/orderwheel/persist"
	"github.com/stretchr/testify/require"
)

// Lost answers and a full Redis, for the dead and for renewal.

// loseAnswerAt has the next call executed at that instant, its answer lost, and the call repeated a
// second later.
func (b bed) loseAnswerAt(p *proxy, at time.Time) {
	n := 0
	p.decide(func(faultproxy.Command) faultproxy.Action {
		n++
		switch n {
		case 1:
			b.mini.SetTime(at)
			return lostAnswer
		case 2:
			b.mini.SetTime(at.Add(time.Second))
		}
		return pass
	})
}

func TestABurialWhoseAnswerIsLostIsSettled(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupMini(t))
	at := time.UnixMilli(2_000_000_000_000)
	start(t, b, "run")
	b.loseAnswerAt(p, at)
	require.Equal(t, persist.Settlement{ID: "x", State: persist.Settled}, buryX(t, b, "tok", "broken"))
	require.Equal(t, []persist.Dead{{ID: "x", BuriedMS: at.UnixMilli(), FirstDueMS: past, Attempt: 1, Reason: "broken"}}, b.allDead(t))

	b.client.FlushAll(t.Context())
	start(t, b, "run+c")
	p.faults(lostAnswer)
	require.Equal(t, persist.Settled, buryX(t, b, "tok", "broken").State)
	b.requireEmpty(t)

	start(t, b, "run+s")
	p.faults(lostAnswer)
	require.Equal(t, persist.Settlement{ID: "x", State: persist.Scheduled, DueMS: future}, buryX(t, b, "tok", "broken"))
	require.Empty(t, b.allDead(t))
}

// What was not applied is refused, also when it was repeated.
func TestABurialThatCameTooLateIsRefusedAlsoWhenRepeated(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupMini(t))
	overdue(t, b, func() {})
	_, err := b.Reap(t.Context(), 1)
	require.NoError(t, err)
	p.faults(lostAnswer)
	require.Equal(t, persist.Refused, buryX(t, b, "tok", "late").State)
	b.claimed(t, "tok2", time.Hour, "x")
	p.faults(lostAnswer)
	require.Equal(t, persist.Refused, buryX(t, b, "tok", "late").State)
	require.Equal(t, persist.Settled, ackX(t, b, "tok2").State)
	b.requireEmpty(t)
}

func TestABurialThatNeverArrivedIsMadeAgain(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupMini(t))
	start(t, b, "run")
	p.faults(notSent, notSent)
	require.Equal(t, persist.Settled, buryX(t, b, "tok", "broken").State)
	require.Equal(t, "broken", b.allDead(t)[0].Reason)
	p.faults(notSent, notSent)
	require.Equal(t, persist.Scheduled, requeueX(t, b).State)
	require.Equal(t, persist.Cancelled, cancelX(t, b))
}

// An ack or a retry of a claim long lost does not settle what was buried since.
func TestALateAckOfWhatIsDeadIsRefusedAlsoWhenRepeated(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupMini(t))
	overdue(t, b, func() {})
	_, err := b.Reap(t.Context(), 1)
	require.NoError(t, err)
	b.claimed(t, "tok2", time.Hour, "x")
	buryX(t, b, "tok2", "broken")
	p.faults(lostAnswer)
	require.Equal(t, persist.Refused, ackX(t, b, "tok").State)
	p.faults(lostAnswer)
	require.Equal(t, persist.Refused, retryX(t, b, persist.Retry{DueMS: 7}).State)
	require.Equal(t, "broken", b.allDead(t)[0].Reason)
}

func TestAClaimThatBuriesAndWhoseAnswerIsLostSaysSo(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupMini(t))
	start(t, b, "retry")
	b.scheduled(t, past, "y")
	p.faults(lostAnswer, lostAnswer)
	got, err := b.Claim(bounded(t), "tok2", []string{"x", "y", "z"}, time.Hour, 1)
	require.NoError(t, err)
	require.Equal(t, []persist.Claim{
		{ID: "x", State: persist.Buried},
		{ID: "y", State: persist.Claimed, Attempt: 1, FirstDueMS: past},
		{ID: "z", State: persist.Gone},
	}, got.Claims)
	got, err = b.Claim(bounded(t), "tok2", []string{"x"}, time.Hour, 1)
	require.NoError(t, err)
	require.Equal(t, persist.Gone, got.Claims[0].State, "a call made anew")
}

func TestARenewalWhoseAnswerIsLostIsTheSame(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupMini(t))
	start(t, b, "run")
	p.faults(lostAnswer)
	require.True(t, renewX(t, b, "tok", 2*time.Hour))
	p.faults(lostAnswer)
	require.False(t, renewX(t, b, "old", 2*time.Hour))
}

func TestARequeueWhoseAnswerIsLostIsScheduled(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupMini(t))
	at := time.UnixMilli(2_000_000_000_000)
	start(t, b, "dead")
	b.loseAnswerAt(p, at)
	require.Equal(t, persist.Settlement{ID: "x", State: persist.Scheduled, DueMS: at.UnixMilli()}, requeueX(t, b))
	require.Equal(t, persist.Record{ID: "x", Status: persist.StatusDue, DueMS: at.UnixMilli()}, lookupX(t, b))

	// Not dead, and not as a requeue would leave it.
	for _, from := range []string{"gone", "later", "retry", "lost", "run"} {
		b.client.FlushAll(t.Context())
		start(t, b, from)
		p.faults(lostAnswer)
		require.Equal(t, persist.Refused, requeueX(t, b).State, from)
	}
}

func TestADiscardWhoseAnswerIsLostSaysTrue(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupMini(t))
	start(t, b, "dead")
	p.faults(lostAnswer)
	require.True(t, discardX(t, b))
	b.requireEmpty(t)
}

// Case 82: what moves work on its way out passes.
func TestAFullRedisBuriesRenewsAndForgets(t *testing.T) {
	t.Parallel()
	b := setupReal(t)
	ctx := bounded(t)
	b.scheduled(t, past, "bury", "renew", "limit", "succ", "gone")
	b.claimed(t, "tok", time.Hour, "bury", "renew", "limit", "succ", "gone")
	b.scheduled(t, future, "succ")
	l := func(id string) persist.Lease { return persist.Lease{ID: id, Token: "tok"} }
	_, err := b.Retry(ctx, []persist.Retry{{Lease: l("limit"), DueMS: past}})
	require.NoError(t, err)
	_, err = b.Cancel(ctx, []string{"gone"})
	require.NoError(t, err)
	b.died(t, past, "discard", "requeue", "other")
	do(t, b.client, "CONFIG", "SET", "maxmemory", "1")
	do(t, b.client, "CONFIG", "SET", "maxmemory-policy", "noeviction")

	// To bring one back to life is new work. It is refused, and nothing is lost.
	before := b.stored(t)
	stopped, cancel := context.WithCancel(ctx)
	store, _ := watch(t, b.server.Client(t), cancel)
	require.ErrorIs(t, store.Schedule(stopped, []persist.Due{{ID: "other", DueMS: past}}), persist.ErrDegraded)
	require.Equal(t, before, b.stored(t))

	// Each in a call of its own, so that no other write goes first.
	renewed, err := b.Renew(ctx, []persist.Lease{l("renew")}, 2*time.Hour)
	require.NoError(t, err)
	require.Equal(t, []bool{true}, renewed)
	for id, state := range map[string]persist.SettleState{"bury": persist.Settled, "succ": persist.Scheduled, "gone": persist.Settled} {
		got, err := b.Bury(ctx, []persist.Burial{{Lease: l(id), Reason: "full"}})
		require.NoError(t, err, id)
		require.Equal(t, state, got[0].State, id)
	}
	claims, err := b.Claim(ctx, "tok2", []string{"limit"}, time.Hour, 1)
	require.NoError(t, err)
	require.Equal(t, persist.Buried, claims.Claims[0].State)
	requeued, err := b.Requeue(ctx, []string{"requeue"})
	require.NoError(t, err)
	require.Equal(t, persist.Scheduled, requeued[0].State)
	discarded, err := b.Discard(ctx, []string{"discard"})
	require.NoError(t, err)
	require.Equal(t, []bool{true}, discarded)

	depth, err := b.Depth(ctx)
	require.NoError(t, err)
	require.Equal(t, persist.Depth{Due: 2, Running: 1, Dead: 3}, depth)
	records, err := b.Lookup(ctx, []string{"bury", "limit", "other"})
	require.NoError(t, err)
	for i, reason := range []string{"full", "attempt 2 of at most 1", "reason of other"} {
		require.Equal(t, reason, records[i].Reason)
	}
	require.Len(t, b.allDead(t), 3)
}

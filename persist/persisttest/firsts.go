package persisttest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/persist"
)

// firsts is what stays with a task over several runs: its first due time, its
// attempts, and that its handler may be at work.
var firsts = []conformance{
	{"the first due survives retries, and attempts are counted", func(t *testing.T, b *bed) {
		b.schedule(t, past, "x")
		for attempt := 1; attempt <= 5; attempt++ {
			c := b.take(t, token, "x")[0]
			require.Equal(t, persist.Claim{ID: "x", State: persist.Claimed, Attempt: attempt, FirstDueMS: past}, c)
			b.putBack(t, token, persist.Retry{DueMS: past + int64(attempt)}, "x")
		}
	}},
	{"an uncounted retry of a later attempt keeps the first due", func(t *testing.T, b *bed) {
		b.start(t, "x")
		b.putBack(t, token, persist.Retry{DueMS: 2000}, "x")
		b.take(t, token, "x")
		b.putBack(t, token, persist.Retry{DueMS: 3000, Uncounted: true}, "x")
		c := b.take(t, token, "x")[0]
		require.Equal(t, persist.Claim{ID: "x", State: persist.Claimed, Attempt: 2, FirstDueMS: past}, c)
	}},
	{"an uncounted first attempt makes the new due the first", func(t *testing.T, b *bed) {
		b.start(t, "x")
		b.putBack(t, token, persist.Retry{DueMS: 3000, Uncounted: true}, "x")
		c := b.take(t, token, "x")[0]
		require.Equal(t, persist.Claim{ID: "x", State: persist.Claimed, Attempt: 1, FirstDueMS: 3000}, c)
	}},
	{"a successor begins with attempt 1 at its own due", func(t *testing.T, b *bed) {
		b.startLost(t, "x")
		b.schedule(t, 7000, "x")
		require.Equal(t, persist.Settlement{ID: "x", State: persist.Scheduled, DueMS: 7000}, b.ack(t, token, "x")[0])
		c := b.take(t, token, "x")[0]
		require.Equal(t, persist.Claim{ID: "x", State: persist.Claimed, Attempt: 1, FirstDueMS: 7000}, c)
		require.False(t, b.lookup(t, "x")[0].Lost)
	}},
	{"a successor due at 0 is one", func(t *testing.T, b *bed) {
		b.start(t, "x")
		b.schedule(t, 0, "x")
		require.Equal(t, persist.Settlement{ID: "x", State: persist.Scheduled}, b.ack(t, token, "x")[0])
		c := b.take(t, token, "x")[0]
		require.Equal(t, persist.Claim{ID: "x", State: persist.Claimed, Attempt: 1}, c)
	}},
	{"a first due of 0 is one, and survives retries", func(t *testing.T, b *bed) {
		b.schedule(t, 0, "x")
		b.take(t, token, "x")
		b.putBack(t, token, persist.Retry{DueMS: 2000}, "x")
		c := b.take(t, token, "x")[0]
		require.Equal(t, persist.Claim{ID: "x", State: persist.Claimed, Attempt: 2}, c)
	}},
	{"the last of several successors wins", func(t *testing.T, b *bed) {
		b.start(t, "x")
		b.schedule(t, 5000, "x")
		b.schedule(t, 9000, "x")
		b.schedule(t, 7000, "x")
		require.EqualValues(t, 7000, b.ack(t, token, "x")[0].DueMS)
	}},
	{"what was requeued has all its attempts again", func(t *testing.T, b *bed) {
		b.kill(t, "x")
		require.Equal(t, persist.Scheduled, b.requeue(t, "x")[0].State)
		claims, err := b.Claim(b.ctx, "tok2", []string{"x"}, time.Hour, 1)
		require.NoError(t, err)
		require.Equal(t, persist.Claimed, claims.Claims[0].State)
		require.Equal(t, 1, claims.Claims[0].Attempt)
	}},
	{"what was cancelled can be scheduled again at once", func(t *testing.T, b *bed) { // case 114
		for range 3 {
			b.schedule(t, past, "x")
			require.Equal(t, persist.Cancelled, b.cancel(t, "x")[0])
		}
		b.schedule(t, past, "x")
		require.Equal(t, 1, b.take(t, token, "x")[0].Attempt)
	}},
	{"a handler that comes after its lease is refused, and a cancel knows of it", func(t *testing.T, b *bed) { // case 115
		b.startOver(t, "x")
		require.Len(t, b.reap(t, 10), 1)
		require.Equal(t, persist.Refused, b.ack(t, token, "x")[0].State)
		b.take(t, "tok2", "x")
		require.Equal(t, persist.Refused, b.retry(t, persist.Retry{Lease: persist.Lease{ID: "x", Token: token}, DueMS: past}).State)
		require.Equal(t, persist.Refused, b.bury(t, token, "late", "x")[0].State)
		require.Equal(t, []bool{false}, b.renew(t, token, time.Hour, "x"))
		require.Equal(t, persist.Settled, b.ack(t, "tok2", "x")[0].State)
		require.Equal(t, persist.Refused, b.ack(t, token, "x")[0].State)
		b.requireEmpty(t)
	}},
	{"the mark lost stays over retries until the ack", func(t *testing.T, b *bed) {
		b.startLost(t, "x")
		b.putBack(t, token, persist.Retry{DueMS: 3000}, "x")
		require.True(t, b.lookup(t, "x")[0].Lost)
		require.Equal(t, persist.Running, b.cancel(t, "x")[0])
		b.requireEmpty(t)
	}},
	{"a task whose every run ends in silence is buried at its limit", func(t *testing.T, b *bed) {
		b.schedule(t, past, "x")
		for attempt := 1; attempt <= 3; attempt++ {
			claims, err := b.Claim(b.ctx, token, []string{"x"}, time.Millisecond, 3)
			require.NoError(t, err)
			require.Equal(t, attempt, claims.Claims[0].Attempt)
			b.pass(t, 2)
			require.Len(t, b.reap(t, 10), 1)
		}
		claims, err := b.Claim(b.ctx, token, []string{"x"}, time.Hour, 3)
		require.NoError(t, err)
		require.Equal(t, []persist.Claim{{ID: "x", State: persist.Buried}}, claims.Claims)
		r := b.lookup(t, "x")[0]
		require.Equal(t, persist.StatusDead, r.Status)
		require.Equal(t, 3, r.Attempt, "the one over the limit was not made")
		require.Contains(t, r.Reason, "3", "the reason names the limit")
	}},
}

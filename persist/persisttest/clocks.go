package persisttest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/persist"
)

// clocks is what the store's clock judges.
var clocks = []conformance{
	{"nothing is claimed before its millisecond", func(t *testing.T, b *bed) { // case 107
		for range 10 {
			at := b.nowMS(t) + 5
			b.schedule(t, at, "x")
			for {
				require.NoError(t, b.ctx.Err())
				claims := b.claim(t, token, time.Hour, "x")
				c := claims.Claims[0]
				if claims.NowMS >= at {
					require.Equal(t, persist.Claim{ID: "x", State: persist.Claimed, Attempt: 1, FirstDueMS: at}, c)
					break
				}
				require.Equal(t, persist.Claim{ID: "x", State: persist.NotYet, DueMS: at, LeftMS: at - claims.NowMS}, c)
				b.pass(t, 1)
			}
			b.ack(t, token, "x")
		}
	}},
	{"a claim tells the clock that judged it", func(t *testing.T, b *bed) {
		b.schedule(t, past, "x")
		before := b.nowMS(t)
		claims := b.claim(t, token, time.Hour, "x")
		require.Equal(t, claims.NowMS, claims.Clock.StoreUS/1000)
		require.False(t, claims.Sent.IsZero() || claims.Sent.After(claims.Clock.Sent))
		require.True(t, before <= claims.NowMS && claims.NowMS <= b.nowMS(t))
		require.Equal(t, claims.NowMS+3_600_000, b.lookup(t, "x")[0].LeaseMS)
		requireSample(t, claims.Clock)
	}},
	{"now reads the clock, between two instants of the caller's", func(t *testing.T, b *bed) {
		first, err := b.Now(b.ctx)
		require.NoError(t, err)
		requireSample(t, first)
		b.pass(t, 3)
		second, err := b.Now(b.ctx)
		require.NoError(t, err)
		require.GreaterOrEqual(t, second.StoreUS-first.StoreUS, int64(2000))
		require.False(t, second.Sent.Before(first.Received))
	}},
	{"a lease that is over is still its token's until it is reaped", func(t *testing.T, b *bed) {
		b.startOver(t, "x")
		require.Equal(t, persist.Busy, b.claim(t, "tok2", time.Hour, "x").Claims[0].State)
		require.Equal(t, []bool{true}, b.renew(t, token, time.Hour, "x"))
		require.Empty(t, b.reap(t, 10))
		require.Equal(t, persist.Settled, b.ack(t, token, "x")[0].State)
	}},
	{"a lease that is not over is not reaped", func(t *testing.T, b *bed) {
		b.start(t, "x")
		b.pass(t, 3)
		require.Empty(t, b.reap(t, 10))
		require.Equal(t, persist.StatusRunning, b.lookup(t, "x")[0].Status)
	}},
	{"the oldest leases are reaped first, and not more than the limit", func(t *testing.T, b *bed) {
		ids := b.near("a", "b", "c", "d", "e")
		a, bb, c, d, e := ids[0], ids[1], ids[2], ids[3], ids[4]
		b.schedule(t, past, ids...)
		for _, l := range []struct {
			lease time.Duration
			ids   []string
		}{{1, []string{d}}, {5, []string{c, bb}}, {10, []string{a}}} {
			b.claim(t, token, l.lease*time.Millisecond, l.ids...)
		}
		b.take(t, token, e)
		b.pass(t, 11)
		reaped := func() (ids []string) { return dueIDs(b.reap(t, 2)) }
		require.Equal(t, []string{d, bb}, reaped())
		require.Equal(t, []string{c, a}, reaped())
		require.Empty(t, reaped())
	}},
	{"what is gone counts towards the limit of a reap, and is not returned", func(t *testing.T, b *bed) {
		ids := b.near("a", "b", "c")
		b.schedule(t, past, ids...)
		b.claim(t, token, time.Millisecond, ids...)
		b.cancel(t, ids[:2]...)
		b.pass(t, 2)
		require.Empty(t, b.reap(t, 2))
		require.Equal(t, persist.Depth{Running: 1}, b.depth(t))
		require.Equal(t, ids[2:], dueIDs(b.reap(t, 2)))
	}},
	{"what is reaped is due now, and can be claimed at once", func(t *testing.T, b *bed) {
		b.startOver(t, "x")
		before := b.nowMS(t)
		reaped := b.reap(t, 10)
		require.Len(t, reaped, 1)
		require.True(t, before <= reaped[0].DueMS && reaped[0].DueMS <= b.nowMS(t))
		c := b.take(t, "tok2", "x")[0]
		require.Equal(t, persist.Claim{ID: "x", State: persist.Claimed, Attempt: 2, FirstDueMS: past}, c)
	}},
	{"a renewed lease ends later, by the store's clock", func(t *testing.T, b *bed) {
		b.schedule(t, past, "x")
		b.claim(t, token, time.Minute, "x")
		b.pass(t, 5)
		before := b.nowMS(t)
		require.Equal(t, []bool{true}, b.renew(t, token, time.Minute, "x"))
		until := b.lookup(t, "x")[0].LeaseMS
		require.True(t, before+60_000 <= until && until <= b.nowMS(t)+60_000)
	}},
}

func requireSample(t *testing.T, s persist.Sample) {
	t.Helper()
	require.False(t, s.Sent.IsZero())
	require.False(t, s.Received.Before(s.Sent))
	require.Positive(t, s.StoreUS)
}

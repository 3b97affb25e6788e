package persist_test

import (
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/persist"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// What a hand may leave behind among the dead.

// alsoDead puts "x" among the dead, wherever it stands.
func alsoDead(t *testing.T, b bed) { b.died(t, past, "x") }

func TestAnIDThatLivesIsNotDead(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		for from, status := range map[string]persist.Status{
			"due": persist.StatusDue, "retry": persist.StatusDue, "lost": persist.StatusDue,
			"run": persist.StatusRunning, "run+c": persist.StatusRunning, "run+s": persist.StatusRunning,
		} {
			for name, op := range map[string]func(){
				"requeue": func() { require.Equal(t, persist.Refused, requeueX(t, b).State) },
				"discard": func() { require.False(t, discardX(t, b)) },
				"bury":    func() { require.Equal(t, persist.Refused, buryX(t, b, "old", "r").State) },
				"renew":   func() { require.False(t, renewX(t, b, "old", time.Hour)) },
				"ack":     func() { require.Equal(t, persist.Refused, ackX(t, b, "old").State) },
			} {
				b.client.FlushAll(t.Context())
				start(t, b, from)
				before := b.stored(t)
				alsoDead(t, b)
				require.Equal(t, status, lookupX(t, b).Status, from)
				require.Empty(t, lookupX(t, b).Reason, from)
				require.Empty(t, b.allDead(t), from)
				op()
				require.Equal(t, before, b.stored(t), "%s of %s leaves it where it lives", name, from)
			}
		}
	})
}

func TestAnIDThatLivesEndsWithoutATraceAmongTheDead(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		start(t, b, "due")
		alsoDead(t, b)
		require.Equal(t, persist.Cancelled, cancelX(t, b))
		b.requireEmpty(t)

		start(t, b, "due")
		alsoDead(t, b)
		b.claimed(t, "tok", time.Hour, "x")
		alsoDead(t, b)
		require.Equal(t, persist.Settled, ackX(t, b, "tok").State)
		b.requireEmpty(t)

		start(t, b, "run")
		alsoDead(t, b)
		require.Equal(t, persist.Settled, buryX(t, b, "tok", "broken").State)
		where, record := left(t, b)
		require.Equal(t, "dead", where)
		require.Equal(t, "1 1000 broken", record, "the reason of the burial")
		require.NotEqual(t, "1000", b.stored(t).Dead["x"], "and its time")
	})
}

// The round of Reap sees what nobody else touches.
func TestReapTakesTheLivingOutOfTheDead(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		start(t, b, "later")
		before := b.stored(t)
		alsoDead(t, b)
		for range 2 {
			_, err := b.Reap(t.Context(), 10)
			require.NoError(t, err)
		}
		require.Equal(t, before, b.stored(t))
	})
}

// Case 53: whoever trims the dead leaves no reason behind.
func TestReasonsOfTheTrimmedAreDropped(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		all := ids("x", 1000)
		b.died(t, past, all...)
		b.scheduled(t, future, all[0])
		b.died(t, past, all[0]) // its reason is back, and it lives
		do(t, b.client, "ZREMRANGEBYRANK", keyDead, 0, 799)
		for call := 0; b.client.HLen(t.Context(), keyReasons).Val() > 200; call++ {
			require.Less(t, call, 100, "a round never ends")
			_, err := b.Reap(t.Context(), 10)
			require.NoError(t, err)
		}
		require.Len(t, b.allDead(t), 200)
		require.Len(t, b.stored(t).Dead, 200)
		require.Equal(t, map[string]string{all[0]: "4000000000000"}, b.stored(t).Due)
	})
}

func TestADeadTaskRemovedByHandCanComeBack(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		start(t, b, "dead")
		do(t, b.client, "ZREM", keyDead, "x")
		require.Equal(t, persist.StatusGone, lookupX(t, b).Status)
		require.Empty(t, lookupX(t, b).Reason)
		require.Equal(t, persist.Refused, requeueX(t, b).State)
		require.False(t, discardX(t, b))

		b.scheduled(t, past, "x")
		b.claimed(t, "tok", time.Hour, "x")
		buryX(t, b, "tok", "again")
		require.Equal(t, "again", b.allDead(t)[0].Reason)
	})
}

func TestADeadTaskWithoutAReasonIsDeadAllTheSame(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		for _, end := range []func(){
			func() { require.True(t, discardX(t, b)) },
			func() {
				require.Equal(t, persist.Scheduled, requeueX(t, b).State)
				require.Equal(t, persist.Cancelled, cancelX(t, b))
			},
		} {
			start(t, b, "dead")
			do(t, b.client, "HDEL", keyReasons, "x")
			dead := b.allDead(t)
			require.Equal(t, []persist.Dead{{ID: "x", BuriedMS: dead[0].BuriedMS}}, dead)
			require.Equal(t, persist.Record{ID: "x", Status: persist.StatusDead, BuriedMS: dead[0].BuriedMS}, lookupX(t, b))
			require.Equal(t, persist.NotFound, cancelX(t, b))
			end()
			b.requireEmpty(t)
		}
	})
}

func TestNoReasonIsTooBroken(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		for record, want := range map[string]persist.Dead{
			"":                   {},
			" ":                  {Reason: " "},
			"3 1000 ":            {Attempt: 3, FirstDueMS: 1000},
			"3 - it broke":       {Attempt: 3, Reason: "it broke"},
			"3 1000  two spaces": {Attempt: 3, FirstDueMS: 1000, Reason: " two spaces"},
			"3 1000":             {Reason: "3 1000"},
			"asked by customer":  {Reason: "asked by customer"}, // by hand
			"3 times it broke":   {Reason: "3 times it broke"},
			"-1 1000 x":          {Reason: "-1 1000 x"},
			"1 -5 x":             {Reason: "1 -5 x"},
			"\x00\xff":           {Reason: "\x00\xff"},
			"99999999999999999999999999 99999999999999999999 x": {Attempt: 1_000_000_000, FirstDueMS: persist.MaxDueMS, Reason: "x"},
		} {
			start(t, b, "dead")
			do(t, b.client, "HSET", keyReasons, "x", record)
			got := b.allDead(t)[0]
			want.ID, want.BuriedMS = "x", got.BuriedMS
			require.Equal(t, want, got, "%q", record)
			r := lookupX(t, b)
			require.Equal(t, want, persist.Dead{ID: r.ID, BuriedMS: r.BuriedMS, FirstDueMS: r.FirstDueMS, Attempt: r.Attempt, Reason: r.Reason}, "%q", record)
			require.Equal(t, persist.NotFound, cancelX(t, b))
			require.Equal(t, record, b.stored(t).Reasons["x"], "it stays as it was written")
			require.Equal(t, persist.Scheduled, requeueX(t, b).State)
			require.Equal(t, persist.Cancelled, cancelX(t, b))
			b.requireEmpty(t)
		}
	})
}

// An operator who buries by hand what runs: its record is a leftover, and the lease that it
// speaks of is not taken back.
func TestARunningTaskMovedToTheDeadByHandIsDead(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		for range 2 {
			start(t, b, "run+s")
			do(t, b.client, "ZREM", keyRunning, "x")
			do(t, b.client, "ZADD", keyDead, past, "x")
			require.Equal(t, persist.Record{ID: "x", Status: persist.StatusDead, BuriedMS: past}, lookupX(t, b))
			require.Equal(t, []persist.Dead{{ID: "x", BuriedMS: past}}, b.allDead(t))
			require.False(t, renewX(t, b, "tok", time.Hour))
			require.Empty(t, b.stored(t).Claims)
			require.Equal(t, persist.Refused, ackX(t, b, "tok").State)
			reaped, err := b.Reap(t.Context(), 10)
			require.NoError(t, err)
			require.Empty(t, reaped)
			require.True(t, discardX(t, b))
			b.requireEmpty(t)
		}
	})
}

func TestAClaimWithoutItsLeaseCanBeRenewedOrBuried(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		start(t, b, "run")
		do(t, b.client, "ZREM", keyRunning, "x")
		require.Equal(t, persist.Record{ID: "x", Status: persist.StatusRunning, FirstDueMS: past, Attempt: 1}, lookupX(t, b))
		require.True(t, renewX(t, b, "tok", time.Hour))
		require.Contains(t, b.stored(t).Running, "x")

		do(t, b.client, "ZREM", keyRunning, "x")
		require.Equal(t, persist.Settled, buryX(t, b, "tok", "broken").State)
		where, record := left(t, b)
		require.Equal(t, "dead", where)
		require.Equal(t, "1 1000 broken", record)
	})
}

func TestALeaseBeyondAnyTimeIsNotRenewedIntoTheUnreadable(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		start(t, b, "run")
		require.NoError(t, b.client.ZAdd(t.Context(), keyRunning, redis.Z{Score: 1e300, Member: "x"}).Err())
		require.True(t, renewX(t, b, "tok", time.Hour))
		require.EqualValues(t, persist.MaxDueMS, lookupX(t, b).LeaseMS)
		require.Equal(t, persist.Settled, ackX(t, b, "tok").State)
		b.requireEmpty(t)
	})
}

package persist_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/persist"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// What our scripts never leave behind, but a hand may: it heals, nothing wedges, no
// script fails.

// Case 55: the lease entry was removed while the task is at work.
func TestAClaimWithoutItsLeaseIsTakenBack(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		start(t, b, "run")
		do(t, b.client, "ZREM", keyRunning, "x")
		got, err := b.Reap(t.Context(), 10)
		require.NoError(t, err)
		require.Len(t, got, 1)
		require.Equal(t, "x", got[0].ID)
		require.Equal(t, 2, b.claimed(t, "tok2", time.Hour, "x")[0].Attempt)
	})
}

// The round over the records sees every one, however many tasks run or are being retried.
func TestAClaimWithoutItsLeaseIsFoundAmongMany(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		many := ids("many", 1000) // more than Redis keeps in one piece, so that HSCAN has a cursor
		b.scheduled(t, past, many...)
		b.claimed(t, "tok", time.Hour, many...)
		for _, i := range []int{0, 333, 777} {
			do(t, b.client, "ZREM", keyRunning, many[i])
		}
		found := map[string]bool{}
		for call := 0; len(found) < 3; call++ {
			require.Less(t, call, 100, "a round never ends")
			got, err := b.Reap(t.Context(), 1)
			require.NoError(t, err)
			require.LessOrEqual(t, len(got), 1)
			for _, d := range got {
				found[d.ID] = true
			}
		}
		require.Equal(t, map[string]bool{many[0]: true, many[333]: true, many[777]: true}, found)
		require.Len(t, b.stored(t).Running, 997, "the others run on")
	})
}

// Redis keeps a small hash in one piece, and HSCAN returns that whole, whatever its
// COUNT: more ids than one unpack can take.
func TestARoundTakesAHashThatIsInOnePiece(t *testing.T) {
	t.Parallel()
	b := setupReal(t, "--hash-max-listpack-entries", "100000", "--hash-max-listpack-value", "1024")
	records := map[string]string{}
	for _, id := range ids("x", 9000) {
		records[id] = "tok 1 - 1000 -"
	}
	require.NoError(t, b.client.HSet(t.Context(), keyClaims, records).Err())
	// Redis looks through the whole piece for each id, which takes seconds on a busy machine: a
	// client that gave up the answer would ask again, and find less.
	c := redis.NewClient(&redis.Options{Addr: b.server.Addr(), ContextTimeoutEnabled: true, ReadTimeout: time.Minute})
	t.Cleanup(func() { _ = c.Close() })
	got, err := newStore(t, c).Reap(t.Context(), 10_000)
	require.NoError(t, err)
	require.Len(t, got, 9000)
	require.Len(t, b.stored(t).Due, 9000)
}

func TestAClaimWithoutItsLeaseCanStillBeSettled(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		lose := func() { do(t, b.client, "ZREM", keyRunning, "x") }

		start(t, b, "run")
		lose()
		require.Equal(t, persist.Settled, ackX(t, b, "tok").State)
		b.requireEmpty(t)

		start(t, b, "run")
		lose()
		require.Equal(t, persist.Scheduled, retryX(t, b, persist.Retry{DueMS: 7}).State)

		b.client.FlushAll(t.Context())
		start(t, b, "run")
		lose()
		got, err := b.Claim(t.Context(), "tok2", []string{"x"}, time.Hour, 0)
		require.NoError(t, err)
		require.Equal(t, persist.Busy, got.Claims[0].State, "until it is taken back")
		require.Equal(t, persist.Running, cancelX(t, b))
		b.scheduled(t, 7, "x")
		reaped, err := b.Reap(t.Context(), 10)
		require.NoError(t, err)
		require.Equal(t, []persist.Due{{ID: "x", DueMS: 7}}, reaped)
	})
}

func TestALeaseWithoutItsRecordEnds(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		start(t, b, "run")
		do(t, b.client, "DEL", keyClaims)
		require.Equal(t, persist.Refused, ackX(t, b, "tok").State, "whose token it was is not known")
		require.Equal(t, persist.Refused, ackX(t, b, "").State)
		require.Equal(t, persist.Refused, ackX(t, b, "-").State)
		got, err := b.Claim(t.Context(), "tok2", []string{"x"}, time.Hour, 0)
		require.NoError(t, err)
		require.Equal(t, persist.Busy, got.Claims[0].State)

		do(t, b.client, "ZADD", keyRunning, 1, "x") // its lease is over
		reaped, err := b.Reap(t.Context(), 10)
		require.NoError(t, err)
		require.Len(t, reaped, 1)
		require.Equal(t, 1, b.claimed(t, "tok3", time.Hour, "x")[0].Attempt)
		require.Equal(t, persist.Settled, ackX(t, b, "tok3").State)
		b.requireEmpty(t)
	})
}

func TestWhatRunsWithoutItsRecordIsNotClaimedAlthoughItIsDue(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		start(t, b, "run")
		do(t, b.client, "HDEL", keyClaims, "x")
		do(t, b.client, "ZADD", keyDue, past, "x")
		b.scheduled(t, past, "y", "plain")
		b.scheduled(t, future, "z")
		do(t, b.client, "ZADD", keyRunning, future, "y", future, "z")
		before := b.stored(t)
		got, err := b.Claim(t.Context(), "tok2", []string{"x", "plain", "y", "z", "plain", "x"}, time.Hour, 0)
		require.NoError(t, err)
		var states []persist.ClaimState
		for _, c := range got.Claims {
			states = append(states, c.State)
		}
		const busy, claimed = persist.Busy, persist.Claimed
		require.Equal(t, []persist.ClaimState{busy, claimed, busy, busy, claimed, busy}, states)
		for _, id := range []string{"x", "y", "z"} {
			require.Equal(t, before.Running[id], b.stored(t).Running[id], "its lease is as it was")
		}
		require.NotContains(t, b.stored(t).Due, "plain")

		do(t, b.client, "ZADD", keyRunning, 1, "x", 1, "y", 1, "z") // the leases are over
		_, err = b.Reap(t.Context(), 10)
		require.NoError(t, err)
		require.Len(t, b.claimed(t, "tok3", time.Hour, "x", "y"), 2, "made due while it ran: a successor")
	})
}

func TestADueTaskRemovedByHandLeavesNoTrace(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		start(t, b, "retry")
		do(t, b.client, "ZREM", keyDue, "x")
		require.Equal(t, persist.NotFound, cancelX(t, b))
		b.requireEmpty(t)

		start(t, b, "retry")
		do(t, b.client, "ZREM", keyDue, "x")
		b.scheduled(t, past, "x")
		require.Equal(t, 1, b.claimed(t, "tok", time.Hour, "x")[0].Attempt)
	})
}

func TestATaskMadeDueByHandWhileItRunsIsItsSuccessor(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		start(t, b, "run")
		do(t, b.client, "ZADD", keyDue, future, "x")
		require.Equal(t, persist.Settlement{ID: "x", State: persist.Scheduled, DueMS: future}, ackX(t, b, "tok"))
	})
}

func TestATaskMovedBackToDueByHandHasNoClaim(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		start(t, b, "run")
		do(t, b.client, "ZREM", keyRunning, "x")
		do(t, b.client, "ZADD", keyDue, past, "x")
		require.Equal(t, persist.Refused, ackX(t, b, "tok").State)
		require.Equal(t, 2, b.claimed(t, "tok2", time.Hour, "x")[0].Attempt)
	})
}

func TestNoRecordIsTooBroken(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		for _, record := range []string{
			"", " ", "x", "tok", "tok 1 - 1000", "tok one - 1000 -", "tok 1 - x y", "tok 1 - 1e400 -9", "- - - - -",
			"tok 99999999999999999999999999 cl 1 1", "tok 1 ? 1000 -", "\x00\xff", "tok 1 - 1000 - more", "{}",
		} {
			for _, state := range []string{"gone", "due", "run", "lost", "dead"} {
				b.client.FlushAll(t.Context())
				start(t, b, state)
				do(t, b.client, "HSET", keyClaims, "x", record)
				name := fmt.Sprintf("%s %q", state, record)
				for _, op := range []func() error{
					func() error { _, err := b.Claim(t.Context(), "new", []string{"x"}, time.Hour, 0); return err },
					func() error { _, err := b.Ack(t.Context(), []persist.Lease{{ID: "x", Token: "tok"}}); return err },
					func() error {
						_, err := b.Retry(t.Context(), []persist.Retry{{Lease: persist.Lease{ID: "x", Token: "tok"}, DueMS: 1}})
						return err
					},
					func() error { return b.Schedule(t.Context(), []persist.Due{{ID: "x", DueMS: 1}}) },
					func() error { _, err := b.Cancel(t.Context(), []string{"x"}); return err },
					func() error { _, err := b.Reap(t.Context(), 10); return err },
					func() error { _, err := b.Lookup(t.Context(), []string{"x"}); return err },
					func() error {
						_, err := b.Renew(t.Context(), []persist.Lease{{ID: "x", Token: "tok"}}, time.Hour)
						return err
					},
					func() error {
						_, err := b.Bury(t.Context(), []persist.Burial{{Lease: persist.Lease{ID: "x", Token: "tok"}}})
						return err
					},
					func() error { _, err := b.Dead(t.Context(), persist.Cursor{}, 10); return err },
					func() error { _, err := b.Requeue(t.Context(), []string{"x"}); return err },
					func() error { _, err := b.Discard(t.Context(), []string{"x"}); return err },
				} {
					require.NoError(t, op(), name)
				}
				// It comes round in the end: nothing is stuck.
				do(t, b.client, "ZADD", keyRunning, "XX", 1, "x")
				for range 2 {
					_, err := b.Reap(t.Context(), 10)
					require.NoError(t, err, name)
				}
				b.scheduled(t, past, "x")
				b.claimed(t, "end", time.Hour, "x")
				require.Equal(t, persist.Settled, ackX(t, b, "end").State, name)
				b.requireEmpty(t)
			}
		}
	})
}

func TestAScoreWrittenByHandFiresNeitherEarlyNorNever(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		for score, want := range map[float64]int64{1000.25: 1001, 0.5: 1, -5: 0, -0.5: 0, math.Inf(-1): 0} {
			require.NoError(t, b.client.ZAdd(t.Context(), keyDue, redis.Z{Score: score, Member: "x"}).Err())
			page, err := b.Window(t.Context(), persist.Cursor{}, future, 10)
			require.NoError(t, err)
			require.Equal(t, []persist.Due{{ID: "x", DueMS: want}}, page.Due, "%v", score)
			require.EqualValues(t, want, b.claimed(t, "tok", time.Hour, "x")[0].FirstDueMS, "%v", score)
			require.Equal(t, persist.Settled, ackX(t, b, "tok").State)
			b.requireEmpty(t)
		}
		for _, score := range []float64{1e15, 1e300, math.Inf(1)} {
			require.NoError(t, b.client.ZAdd(t.Context(), keyDue, redis.Z{Score: score, Member: "x"}).Err())
			got, err := b.Claim(t.Context(), "tok", []string{"x"}, time.Hour, 0)
			require.NoError(t, err)
			require.Equal(t, persist.NotYet, got.Claims[0].State)
			require.EqualValues(t, persist.MaxDueMS, got.Claims[0].DueMS)
			require.Equal(t, persist.Cancelled, cancelX(t, b))
			b.requireEmpty(t)
		}
	})
}

// A key of another type is somebody else's: nothing is touched, and it is said by every call
// that has to do with it.
func TestAKeyOfAnotherTypeIsAnError(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		ctx := t.Context()
		for _, key := range []string{keyDue, keyRunning, keyClaims, keyDead, keyReasons} {
			b.client.FlushAll(ctx)
			require.NoError(t, b.client.Set(ctx, key, "theirs", 0).Err())
			fatal := func(err error) {
				t.Helper()
				require.ErrorIs(t, err, persist.ErrFatal, key)
				require.ErrorContains(t, err, "WRONGTYPE", key)
				require.NotErrorIs(t, err, persist.ErrUnknownOutcome, key)
			}
			fatal(b.Schedule(ctx, []persist.Due{{ID: "x", DueMS: past}, {ID: "y", DueMS: past}}))
			_, err := b.Cancel(ctx, []string{"x", "y"})
			fatal(err)
			if key != keyReasons { // one that is not dead has nothing to do with it
				fatal(b.Schedule(ctx, []persist.Due{{ID: "x", DueMS: past}}))
				_, err = b.Cancel(ctx, []string{"x"})
				fatal(err)
			}
			_, err = b.Claim(ctx, "tok", []string{"x"}, time.Hour, 0)
			fatal(err)
			_, err = b.Ack(ctx, []persist.Lease{{ID: "x", Token: "tok"}})
			fatal(err)
			_, err = b.Retry(ctx, []persist.Retry{{Lease: persist.Lease{ID: "x", Token: "tok"}}})
			fatal(err)
			_, err = b.Bury(ctx, []persist.Burial{{Lease: persist.Lease{ID: "x", Token: "tok"}}})
			fatal(err)
			_, err = b.Renew(ctx, []persist.Lease{{ID: "x", Token: "tok"}}, time.Hour)
			fatal(err)
			_, err = b.Requeue(ctx, []string{"x"})
			fatal(err)
			_, err = b.Discard(ctx, []string{"x"})
			fatal(err)
			_, err = b.Lookup(ctx, []string{"x"})
			fatal(err)
			_, err = b.Dead(ctx, persist.Cursor{}, 10)
			if key == keyDead || key == keyReasons {
				fatal(err)
			}
			_, err = b.Check(ctx)
			fatal(err)
			if key == keyDue {
				_, err = b.Window(ctx, persist.Cursor{}, future, 10)
				fatal(err)
			} else {
				_, err = b.Reap(ctx, 10)
				fatal(err)
			}
			if key != keyClaims && key != keyReasons {
				_, err = b.Depth(ctx)
				fatal(err)
			}
			require.Equal(t, []string{key}, b.client.Keys(ctx, "*").Val(), "nothing was written")
		}
	})
}

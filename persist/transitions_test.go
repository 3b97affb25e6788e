package persist_test

import (
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/persist"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// The table of transitions, line by line. Each line starts from a state of the id
// "x", does one thing, and says what is answered and what is left. The random
// walk finds what nobody thought of; this is what somebody reads.

const (
	past   = 1_000
	future = 4_000_000_000_000 // in 2096
)

// start brings "x" into a state. Where it runs it has the token "tok", attempt 1.
func start(t *testing.T, b bed, state string) {
	t.Helper()
	switch state {
	case "gone":
	case "due":
		b.scheduled(t, past, "x")
	case "later":
		b.scheduled(t, future, "x")
	case "run":
		b.scheduled(t, past, "x")
		b.claimed(t, "tok", time.Hour, "x")
	case "run+c", "run+cs": // cancelled; then scheduled
		start(t, b, "run")
		cancelX(t, b)
		if state == "run+cs" {
			b.scheduled(t, future, "x")
		}
	case "run+s", "run+sc": // scheduled; then cancelled
		start(t, b, "run")
		b.scheduled(t, future, "x")
		if state == "run+sc" {
			cancelX(t, b)
		}
	case "retry", "lost": // put back; its handler may still be at work
		start(t, b, "run")
		retryX(t, b, persist.Retry{DueMS: 2_000, Abandoned: state == "lost"})
	case "dead":
		start(t, b, "run")
		require.Equal(t, persist.Settlement{ID: "x", State: persist.Settled}, buryX(t, b, "tok", "broken"))
	default:
		t.Fatalf("no state %q", state)
	}
}

func cancelX(t *testing.T, b bed) persist.CancelOutcome {
	got, err := b.Cancel(bounded(t), []string{"x"})
	require.NoError(t, err)
	return got[0]
}

func retryX(t *testing.T, b bed, r persist.Retry) persist.Settlement {
	r.ID = "x"
	if r.Token == "" {
		r.Token = "tok"
	}
	got, err := b.Retry(bounded(t), []persist.Retry{r})
	require.NoError(t, err)
	require.Equal(t, "x", got[0].ID)
	return got[0]
}

func ackX(t *testing.T, b bed, token string) persist.Settlement {
	got, err := b.Ack(bounded(t), []persist.Lease{{ID: "x", Token: token}})
	require.NoError(t, err)
	require.Equal(t, "x", got[0].ID)
	return got[0]
}

// left is what stands in Redis for "x": where, and its record (of the dead, that of
// the reasons).
func left(t *testing.T, b bed) (where, record string) {
	s := b.stored(t)
	_, running := s.Running["x"]
	due, isDue := s.Due["x"]
	_, dead := s.Dead["x"]
	require.False(t, running && isDue || running && dead || isDue && dead, "in two places")
	_, reason := s.Reasons["x"]
	require.Equal(t, dead, reason, "a reason is there for the dead, and for nobody else")
	switch {
	case dead:
		require.NotContains(t, s.Claims, "x")
		return "dead", s.Reasons["x"]
	case running:
		where = "running"
	case isDue:
		where = "due " + due
	default:
		where = "gone"
	}
	return where, s.Claims["x"]
}

func TestScheduleMakesDueOrSetsTheSuccessor(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		for _, line := range []struct{ from, where, record string }{
			{"gone", "due 5000", ""},
			{"due", "due 5000", ""},
			{"later", "due 5000", ""},
			{"retry", "due 5000", ""}, // afresh: attempt 0
			{"lost", "due 5000", ""},  // and no flags
			{"dead", "due 5000", ""},
			{"run", "running", "tok 1 - 1000 5000"},
			{"run+c", "running", "tok 1 - 1000 5000"},
			{"run+s", "running", "tok 1 - 1000 5000"}, // the last one wins
		} {
			b.client.FlushAll(t.Context())
			start(t, b, line.from)
			b.scheduled(t, 5000, "x")
			where, record := left(t, b)
			require.Equal(t, line.where, where, line.from)
			require.Equal(t, line.record, record, line.from)
		}
	})
}

func TestCancelRemovesWhatIsDueAndMarksWhatRuns(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		for _, line := range []struct {
			from          string
			want          persist.CancelOutcome
			where, record string
		}{
			{"gone", persist.NotFound, "gone", ""},
			{"due", persist.Cancelled, "gone", ""},
			{"later", persist.Cancelled, "gone", ""},
			{"retry", persist.Cancelled, "gone", ""},
			{"lost", persist.Running, "gone", ""}, // its old handler may be at work
			{"run", persist.Running, "running", "tok 1 c 1000 -"},
			{"run+s", persist.Running, "running", "tok 1 c 1000 -"},
			{"run+c", persist.Running, "running", "tok 1 c 1000 -"},
			{"dead", persist.NotFound, "dead", "1 1000 broken"},
		} {
			b.client.FlushAll(t.Context())
			start(t, b, line.from)
			require.Equal(t, line.want, cancelX(t, b), line.from)
			where, record := left(t, b)
			require.Equal(t, line.where, where, line.from)
			require.Equal(t, line.record, record, line.from)
		}
	})
}

func TestClaimTakesOnlyWhatIsDueByTheStoresClock(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		for _, line := range []struct {
			from, token   string
			want          persist.Claim
			where, record string
		}{
			{"gone", "new", persist.Claim{State: persist.Gone}, "gone", ""},
			{"due", "new", persist.Claim{State: persist.Claimed, Attempt: 1, FirstDueMS: past}, "running", "new 1 - 1000 -"},
			{"retry", "new", persist.Claim{State: persist.Claimed, Attempt: 2, FirstDueMS: past}, "running", "new 2 - 1000 -"},
			{"lost", "new", persist.Claim{State: persist.Claimed, Attempt: 2, FirstDueMS: past}, "running", "new 2 l 1000 -"},
			{"run", "new", persist.Claim{State: persist.Busy}, "running", "tok 1 - 1000 -"},
			{"run", "tok", persist.Claim{State: persist.Claimed, Attempt: 1, FirstDueMS: past}, "running", "tok 1 - 1000 -"},
			{"run+c", "tok", persist.Claim{State: persist.Claimed, Attempt: 1, FirstDueMS: past}, "running", "tok 1 c 1000 -"},
			{"run+s", "tok", persist.Claim{State: persist.Claimed, Attempt: 1, FirstDueMS: past}, "running", "tok 1 - 1000 4000000000000"},
			{"later", "new", persist.Claim{State: persist.NotYet, DueMS: future}, "due 4000000000000", ""},
			{"dead", "new", persist.Claim{State: persist.Gone}, "dead", "1 1000 broken"},
			{"dead", "tok", persist.Claim{State: persist.Gone}, "dead", "1 1000 broken"},
		} {
			b.client.FlushAll(t.Context())
			start(t, b, line.from)
			got, err := b.Claim(t.Context(), line.token, []string{"x"}, time.Minute, 0)
			require.NoError(t, err)
			want := line.want
			want.ID = "x"
			if want.State == persist.NotYet {
				want.LeftMS = future - got.NowMS
			}
			require.Equal(t, want, got.Claims[0], line.from)
			where, record := left(t, b)
			require.Equal(t, line.where, where, line.from)
			require.Equal(t, line.record, record, line.from)
		}
	})
}

func TestAckNeedsTheTokenAndMakesTheSuccessorDue(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		settled := persist.Settlement{ID: "x", State: persist.Settled}
		refused := persist.Settlement{ID: "x", State: persist.Refused}
		for _, line := range []struct {
			from, token   string
			want          persist.Settlement
			where, record string
		}{
			{"gone", "tok", refused, "gone", ""},
			{"due", "tok", refused, "due 1000", ""},
			{"retry", "tok", refused, "due 2000", "- 1 - 1000 -"},
			{"dead", "tok", refused, "dead", "1 1000 broken"},
			{"run", "old", refused, "running", "tok 1 - 1000 -"},
			{"run", "tok", settled, "gone", ""},
			{"run+c", "tok", settled, "gone", ""},
			{"run+sc", "tok", settled, "gone", ""},
			{"run+s", "tok", persist.Settlement{ID: "x", State: persist.Scheduled, DueMS: future}, "due 4000000000000", ""},
			{"run+cs", "tok", persist.Settlement{ID: "x", State: persist.Scheduled, DueMS: future}, "due 4000000000000", ""},
		} {
			b.client.FlushAll(t.Context())
			start(t, b, line.from)
			require.Equal(t, line.want, ackX(t, b, line.token), line.from)
			where, record := left(t, b)
			require.Equal(t, line.where, where, line.from)
			require.Equal(t, line.record, record, line.from)
		}
	})
}

func TestRetryNeedsTheTokenAndGivesWayToSuccessorAndCancel(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		refused := persist.Settlement{ID: "x", State: persist.Refused}
		at := func(ms int64) persist.Settlement {
			return persist.Settlement{ID: "x", State: persist.Scheduled, DueMS: ms}
		}
		for _, line := range []struct {
			from          string
			retry         persist.Retry
			want          persist.Settlement
			where, record string
		}{
			{"gone", persist.Retry{DueMS: 7}, refused, "gone", ""},
			{"due", persist.Retry{DueMS: 7}, refused, "due 1000", ""},
			{"retry", persist.Retry{DueMS: 7}, refused, "due 2000", "- 1 - 1000 -"},
			{"dead", persist.Retry{DueMS: 7}, refused, "dead", "1 1000 broken"},
			{"run", persist.Retry{DueMS: 7, Lease: persist.Lease{Token: "old"}}, refused, "running", "tok 1 - 1000 -"},
			{"run", persist.Retry{DueMS: 7}, at(7), "due 7", "- 1 - 1000 -"},
			{"run", persist.Retry{DueMS: 7, Abandoned: true}, at(7), "due 7", "- 1 l 1000 -"},
			{"run", persist.Retry{DueMS: 7, Uncounted: true}, at(7), "due 7", ""},
			{"run", persist.Retry{DueMS: 7, Uncounted: true, Abandoned: true}, at(7), "due 7", "- 0 l 1000 -"},
			{"run+c", persist.Retry{DueMS: 7}, persist.Settlement{ID: "x", State: persist.Settled}, "gone", ""},
			{"run+s", persist.Retry{DueMS: 7}, at(future), "due 4000000000000", ""},
			{"run+sc", persist.Retry{DueMS: 7}, persist.Settlement{ID: "x", State: persist.Settled}, "gone", ""},
			{"run+cs", persist.Retry{DueMS: 7, Abandoned: true}, at(future), "due 4000000000000", ""},
		} {
			b.client.FlushAll(t.Context())
			start(t, b, line.from)
			require.Equal(t, line.want, retryX(t, b, line.retry), line.from)
			where, record := left(t, b)
			require.Equal(t, line.where, where, line.from)
			require.Equal(t, line.record, record, line.from)
		}
	})
}

func TestAnUncountedRetryOfALaterAttemptKeepsTheFirstDue(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		start(t, b, "retry")
		b.claimed(t, "tok2", time.Hour, "x")
		retryX(t, b, persist.Retry{Lease: persist.Lease{Token: "tok2"}, DueMS: 3_000, Uncounted: true})
		c := b.claimed(t, "tok3", time.Hour, "x")[0]
		require.Equal(t, 2, c.Attempt)
		require.EqualValues(t, past, c.FirstDueMS)
	})
}

func TestAnUncountedFirstAttemptMakesTheNewDueTheFirst(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		start(t, b, "run")
		retryX(t, b, persist.Retry{DueMS: 3_000, Uncounted: true})
		c := b.claimed(t, "tok2", time.Hour, "x")[0]
		require.Equal(t, 1, c.Attempt)
		require.EqualValues(t, 3_000, c.FirstDueMS)
	})
}

// overdue claims "x" with a short lease, does more to it, and waits until the
// lease is over.
func overdue(t *testing.T, b bed, more func()) {
	b.scheduled(t, past, "x")
	if b.mini != nil {
		b.mini.SetTime(time.UnixMilli(2_000_000_000_000))
	}
	b.claimed(t, "tok", time.Millisecond, "x")
	more()
	b.waitFor(t, b.nowMS(t)+1)
}

func TestReapTakesBackWhatHasNoLeaseAnyMore(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		before := b.nowMS(t)
		overdue(t, b, func() {})
		got, err := b.Reap(t.Context(), 10)
		require.NoError(t, err)
		require.Len(t, got, 1)
		require.Equal(t, "x", got[0].ID)
		require.GreaterOrEqual(t, got[0].DueMS, before)
		_, record := left(t, b)
		require.Equal(t, "- 1 l 1000 -", record)
		// Its old handler comes late and is refused; a cancel knows that it may be
		// at work.
		require.Equal(t, persist.Refused, ackX(t, b, "tok").State)
		require.Equal(t, persist.Refused, retryX(t, b, persist.Retry{DueMS: 1}).State)
		require.Equal(t, persist.Running, cancelX(t, b))
		b.requireEmpty(t)
	})
}

func TestReapGivesWayToSuccessorAndCancel(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		overdue(t, b, func() { b.scheduled(t, future, "x") })
		got, err := b.Reap(t.Context(), 10)
		require.NoError(t, err)
		require.Equal(t, []persist.Due{{ID: "x", DueMS: future}}, got)
		_, record := left(t, b)
		require.Empty(t, record)

		require.Equal(t, persist.Cancelled, cancelX(t, b))
		overdue(t, b, func() { require.Equal(t, persist.Running, cancelX(t, b)) })
		got, err = b.Reap(t.Context(), 10)
		require.NoError(t, err)
		require.Empty(t, got)
		b.requireEmpty(t)
	})
}

func TestReapLeavesALeaseThatIsNotOver(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		start(t, b, "run")
		got, err := b.Reap(t.Context(), 10)
		require.NoError(t, err)
		require.Empty(t, got)
		require.Equal(t, persist.Settled, ackX(t, b, "tok").State)
	})
}

func TestReapTakesTheOldestLeasesFirstAndNotMoreThanTheLimit(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		b.scheduled(t, past, "a", "b", "c", "d")
		b.claimed(t, "tok", time.Hour, "a", "b", "c", "d")
		for i, id := range []string{"c", "a", "b"} { // their leases ended long ago, in this order
			b.client.ZAdd(t.Context(), keyRunning, redis.Z{Score: float64(i), Member: id})
		}
		taken := func() (list []string) {
			dues, err := b.Reap(t.Context(), 2)
			require.NoError(t, err)
			for _, d := range dues {
				list = append(list, d.ID)
			}
			return list
		}
		require.Equal(t, []string{"c", "a"}, taken())
		require.Equal(t, []string{"b"}, taken())
		require.Empty(t, taken())
	})
}

func TestAnIDMayStandInABatchMoreThanOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		ctx := t.Context()
		require.NoError(t, b.Schedule(ctx, []persist.Due{{ID: "x", DueMS: 1}, {ID: "x", DueMS: 2}, {ID: "x", DueMS: past}}))
		claims := b.claimed(t, "tok", time.Hour, "x", "x")
		require.Equal(t, claims[0], claims[1])
		got, err := b.Ack(ctx, []persist.Lease{{ID: "x", Token: "tok"}, {ID: "x", Token: "tok"}})
		require.NoError(t, err)
		require.Equal(t, persist.Settled, got[0].State)
		require.Equal(t, persist.Refused, got[1].State)

		b.scheduled(t, past, "x")
		outcomes, err := b.Cancel(ctx, []string{"x", "y", "x"})
		require.NoError(t, err)
		require.Equal(t, []persist.CancelOutcome{persist.Cancelled, persist.NotFound, persist.NotFound}, outcomes)
		b.requireEmpty(t)
	})
}

func TestAnEmptyBatchAsksNothing(t *testing.T) {
	t.Parallel()
	b := setupMini(t)
	b.mini.Close() // nobody could answer
	ctx := t.Context()
	require.NoError(t, b.Schedule(ctx, nil))
	_, err := b.Cancel(ctx, nil)
	require.NoError(t, err)
	claims, err := b.Claim(ctx, "tok", nil, time.Second, 0)
	require.NoError(t, err)
	require.Empty(t, claims.Claims)
	_, err = b.Ack(ctx, nil)
	require.NoError(t, err)
	_, err = b.Retry(ctx, nil)
	require.NoError(t, err)
	_, err = b.Bury(ctx, nil)
	require.NoError(t, err)
	_, err = b.Renew(ctx, nil, time.Second)
	require.NoError(t, err)
	_, err = b.Requeue(ctx, nil)
	require.NoError(t, err)
	_, err = b.Discard(ctx, nil)
	require.NoError(t, err)
	_, err = b.Lookup(ctx, nil)
	require.NoError(t, err)
}

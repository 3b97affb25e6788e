package persist_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/persist"
	"github.com/orderwheel/orderwheel/persist/persisttest"
	"github.com/stretchr/testify/require"
)

// Cases 71 and 139: a due time keeps every digit on every path that writes it, up to
// the end of year 9999, on miniredis and on Redis.

// times are round ones, which a server may write as 4e+12, their neighbours, and
// random ones of every magnitude.
func times(t *testing.T) []int64 {
	list := []int64{0, persist.MaxDueMS, 99_999_999_999_999, 123_456_789_012_345, math.MaxInt32, math.MaxUint32}
	for n := int64(1); n <= persist.MaxDueMS; n *= 10 {
		for k := int64(1); k < 10 && n*k < persist.MaxDueMS; k += 3 {
			list = append(list, n*k-1, n*k, n*k+1)
		}
	}
	seed := persisttest.Seeds(t, 1)[0]
	t.Logf("ORDERWHEEL_SEED=%d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 50 {
		list = append(list, rnd.Int64N(int64(math.Pow10(1+rnd.IntN(14)))), rnd.Int64N(persist.MaxDueMS+1))
	}
	return list
}

// tasks makes each time due under an id of its own.
func tasks(t *testing.T) (dues []persist.Due, list []string) {
	all := times(t)
	list = ids("id", len(all))
	for i, ms := range all {
		dues = append(dues, persist.Due{ID: list[i], DueMS: ms})
	}
	return dues, list
}

func (b bed) requireScores(t *testing.T, dues []persist.Due) {
	t.Helper()
	for _, d := range dues {
		score, err := b.client.ZScore(t.Context(), keyDue, d.ID).Result()
		require.NoError(t, err)
		require.Equal(t, float64(d.DueMS), score, d.ID)
	}
}

func TestScheduleAndWindowKeepEveryDigit(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		dues, _ := tasks(t)
		require.NoError(t, b.Schedule(t.Context(), dues))
		b.requireScores(t, dues)
		page, err := b.Window(t.Context(), persist.Cursor{}, persist.MaxDueMS, 2*len(dues))
		require.NoError(t, err)
		require.ElementsMatch(t, dues, page.Due)
	})
}

func TestClaimKeepsEveryDigit(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		dues, list := tasks(t)
		require.NoError(t, b.Schedule(t.Context(), dues))
		got, err := b.Claim(t.Context(), "tok", list, time.Hour, 0)
		require.NoError(t, err)
		for i, d := range dues {
			c := got.Claims[i]
			if d.DueMS <= got.NowMS {
				require.Equal(t, persist.Claim{ID: d.ID, State: persist.Claimed, Attempt: 1, FirstDueMS: d.DueMS}, c)
			} else {
				require.Equal(t, persist.Claim{ID: d.ID, State: persist.NotYet, DueMS: d.DueMS, LeftMS: d.DueMS - got.NowMS}, c)
			}
		}
	})
}

// running has all ids claimed.
func (b bed) running(t *testing.T, list []string) (leases []persist.Lease) {
	b.scheduled(t, 1, list...)
	b.claimed(t, "tok", time.Hour, list...)
	for _, id := range list {
		leases = append(leases, persist.Lease{ID: id, Token: "tok"})
	}
	return leases
}

// requireScheduled checks settlements that all say when the task is due.
func requireScheduled(t *testing.T, dues []persist.Due, got []persist.Settlement) {
	t.Helper()
	for i, d := range dues {
		require.Equal(t, persist.Settlement{ID: d.ID, State: persist.Scheduled, DueMS: d.DueMS}, got[i])
	}
}

func TestRetryKeepsEveryDigit(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		dues, list := tasks(t)
		var retries []persist.Retry
		for i, l := range b.running(t, list) {
			retries = append(retries, persist.Retry{Lease: l, DueMS: dues[i].DueMS})
		}
		got, err := b.Retry(t.Context(), retries)
		require.NoError(t, err)
		requireScheduled(t, dues, got)
		b.requireScores(t, dues)
	})
}

func TestASuccessorKeepsEveryDigit(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		dues, list := tasks(t)
		leases := b.running(t, list)
		require.NoError(t, b.Schedule(t.Context(), dues))
		got, err := b.Ack(t.Context(), leases)
		require.NoError(t, err)
		requireScheduled(t, dues, got)
		b.requireScores(t, dues)
	})
}

func TestReapKeepsEveryDigitOfASuccessor(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		dues, list := tasks(t)
		b.scheduled(t, 1, list...)
		b.claimed(t, "tok", time.Millisecond, list...)
		require.NoError(t, b.Schedule(t.Context(), dues))
		b.waitFor(t, b.nowMS(t)+100) // read after the claim: the lease is over then, however long it took
		got, err := b.Reap(t.Context(), 2*len(dues))
		require.NoError(t, err)
		require.ElementsMatch(t, dues, got)
		b.requireScores(t, dues)
	})
}

// A first due in the future cannot come about before its time, so it is written by hand.
func TestTheFirstDueKeepsEveryDigitOverRetries(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		dues, list := tasks(t)
		b.scheduled(t, 1, list...)
		records := map[string]string{}
		var retries []persist.Retry
		for _, d := range dues {
			records[d.ID] = fmt.Sprintf("- 1 - %d -", d.DueMS)
			retries = append(retries, persist.Retry{Lease: persist.Lease{ID: d.ID, Token: "tok2"}, DueMS: 1})
		}
		require.NoError(t, b.client.HSet(t.Context(), keyClaims, records).Err())
		for attempt := 2; attempt <= 3; attempt++ {
			for i, c := range b.claimed(t, "tok2", time.Hour, list...) {
				require.Equal(t, persist.Claim{ID: list[i], State: persist.Claimed, Attempt: attempt, FirstDueMS: dues[i].DueMS}, c)
			}
			_, err := b.Retry(t.Context(), retries)
			require.NoError(t, err)
		}
	})
}

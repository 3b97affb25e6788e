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

// Cases 71 and 139 on the paths of the dead, of renewal and of reading.

func burials(leases []persist.Lease) (list []persist.Burial) {
	for _, l := range leases {
		list = append(list, persist.Burial{Lease: l, Reason: "of " + l.ID})
	}
	return list
}

// scored sets the score of each id, which has to stand there, to its time.
func (b bed) scored(t *testing.T, key string, dues []persist.Due) {
	t.Helper()
	for _, d := range dues {
		require.NoError(t, b.client.ZAddXX(t.Context(), key, redis.Z{Score: float64(d.DueMS), Member: d.ID}).Err())
	}
}

func TestBuryKeepsEveryDigitOfASuccessor(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		dues, list := tasks(t)
		leases := b.running(t, list)
		require.NoError(t, b.Schedule(t.Context(), dues))
		records, err := b.Lookup(t.Context(), list)
		require.NoError(t, err)
		for i, r := range records {
			require.Equal(t, dues[i].DueMS, r.Successor)
		}
		got, err := b.Bury(t.Context(), burials(leases))
		require.NoError(t, err)
		requireScheduled(t, dues, got)
		b.requireScores(t, dues)
	})
}

// firstDue makes each task's first due its time, which cannot come about before that time, so it
// is written by hand. All of them are due, after one attempt.
func (b bed) firstDue(t *testing.T, dues []persist.Due, list []string) {
	t.Helper()
	b.scheduled(t, 1, list...)
	records := map[string]string{}
	for _, d := range dues {
		records[d.ID] = fmt.Sprintf("- 1 - %d -", d.DueMS)
	}
	require.NoError(t, b.client.HSet(t.Context(), keyClaims, records).Err())
}

func TestTheDeadKeepEveryDigit(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		dues, list := tasks(t)
		b.firstDue(t, dues, list)
		var leases []persist.Lease
		for _, c := range b.claimed(t, "tok", time.Hour, list...) {
			leases = append(leases, persist.Lease{ID: c.ID, Token: "tok"})
		}
		_, err := b.Bury(t.Context(), burials(leases))
		require.NoError(t, err)
		b.scored(t, keyDead, dues) // the times of burial too

		var want []persist.Dead
		records, err := b.Lookup(t.Context(), list)
		require.NoError(t, err)
		for i, d := range dues {
			want = append(want, persist.Dead{ID: d.ID, BuriedMS: d.DueMS, FirstDueMS: d.DueMS, Attempt: 2, Reason: "of " + d.ID})
			require.Equal(t, persist.Record{
				ID: d.ID, Status: persist.StatusDead, BuriedMS: d.DueMS, FirstDueMS: d.DueMS, Attempt: 2, Reason: "of " + d.ID,
			}, records[i])
		}
		require.ElementsMatch(t, want, b.allDead(t))
		// The cursors have them all too: pages of one, so that each time is one.
		var got []persist.Dead
		for page := (persist.DeadPage{More: true}); page.More; {
			page, err = b.Dead(t.Context(), page.Next, 1)
			require.NoError(t, err)
			got = append(got, page.Dead...)
		}
		require.Equal(t, b.allDead(t), got)
	})
}

func TestABurialByTheLimitKeepsEveryDigitOfTheFirstDue(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		dues, list := tasks(t)
		b.firstDue(t, dues, list)
		got, err := b.Claim(t.Context(), "tok", list, time.Hour, 1)
		require.NoError(t, err)
		records, err := b.Lookup(t.Context(), list)
		require.NoError(t, err)
		for i, r := range records {
			require.Equal(t, persist.Claim{ID: list[i], State: persist.Buried}, got.Claims[i])
			require.Equal(t, persist.Record{
				ID: list[i], Status: persist.StatusDead, BuriedMS: got.NowMS, FirstDueMS: dues[i].DueMS, Attempt: 1, Reason: "attempt 2 of at most 1",
			}, r)
		}
	})
}

func TestLookupKeepsEveryDigitOfDueAndFirstDue(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		dues, list := tasks(t)
		b.firstDue(t, dues, list)
		b.scored(t, keyDue, dues)
		records, err := b.Lookup(t.Context(), list)
		require.NoError(t, err)
		for i, r := range records {
			require.Equal(t, persist.Record{
				ID: list[i], Status: persist.StatusDue, DueMS: dues[i].DueMS, FirstDueMS: dues[i].DueMS, Attempt: 1,
			}, r)
		}
	})
}

func TestRenewKeepsEveryDigit(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		dues, list := tasks(t)
		leases := b.running(t, list)
		b.scored(t, keyRunning, dues)
		before := b.nowMS(t)
		renewed, err := b.Renew(t.Context(), leases, time.Millisecond)
		require.NoError(t, err)
		require.NotContains(t, renewed, false)
		after := b.nowMS(t)
		records, err := b.Lookup(t.Context(), list)
		require.NoError(t, err)
		for i, r := range records {
			if dues[i].DueMS > after {
				require.Equal(t, dues[i].DueMS, r.LeaseMS, "it was longer")
				require.Equal(t, float64(dues[i].DueMS), b.client.ZScore(t.Context(), keyRunning, r.ID).Val())
			} else {
				require.True(t, before < r.LeaseMS && r.LeaseMS <= after+1, "at most %d, not %d", after+1, r.LeaseMS)
			}
		}
	})
}

// Of miniredis alone the clock can be set, until its TIME runs over in 2262: what is written at an
// instant has all its digits.
func TestTheInstantOfABurialKeepsEveryDigit(t *testing.T) {
	t.Parallel()
	b := setupMini(t)
	dues, _ := tasks(t)
	for _, d := range dues {
		if d.DueMS < 1 || d.DueMS > math.MaxInt64/int64(time.Millisecond) {
			continue
		}
		b.mini.SetTime(time.UnixMilli(d.DueMS))
		b.scheduled(t, 1, "x", "y")
		b.claimed(t, "tok", time.Hour, "x", "y")
		require.True(t, renewX(t, b, "tok", 2*time.Hour))
		require.Equal(t, d.DueMS+7_200_000, lookupX(t, b).LeaseMS)
		buryX(t, b, "tok", "r")
		require.Equal(t, d.DueMS, b.allDead(t)[0].BuriedMS)
		require.Equal(t, d.DueMS, lookupX(t, b).BuriedMS)
		require.Equal(t, persist.Settlement{ID: "x", State: persist.Scheduled, DueMS: d.DueMS}, requeueX(t, b))
		retried, err := b.Retry(t.Context(), []persist.Retry{{Lease: persist.Lease{ID: "y", Token: "tok"}, DueMS: 1}})
		require.NoError(t, err)
		require.Equal(t, persist.Scheduled, retried[0].State)
		got, err := b.Claim(t.Context(), "tok2", []string{"y"}, time.Hour, 1)
		require.NoError(t, err)
		require.Equal(t, persist.Buried, got.Claims[0].State)
		require.Equal(t, d.DueMS, b.allDead(t)[0].BuriedMS)
		b.mini.FlushAll()
	}
}

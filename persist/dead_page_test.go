package persist_test

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/orderwheel/orderwheel/persist"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// The pages of the dead share the way of Window; what differs is tested here, and the
// ties once more.

// died puts ids among the dead at ms.
func (b bed) died(t testing.TB, ms int64, list ...string) {
	t.Helper()
	for chunk := range slices.Chunk(list, 500) {
		scores := make([]redis.Z, len(chunk))
		reasons := map[string]string{}
		for i, id := range chunk {
			scores[i] = redis.Z{Score: float64(ms), Member: id}
			reasons[id] = "1 1000 reason of " + id
		}
		require.NoError(t, b.client.ZAdd(t.Context(), keyDead, scores...).Err())
		require.NoError(t, b.client.HSet(t.Context(), keyReasons, reasons).Err())
	}
}

// readDead reads all pages; between two of them it calls meanwhile.
func (b bed) readDead(t *testing.T, limit int, meanwhile func(persist.DeadPage)) (list []string) {
	t.Helper()
	for page := (persist.DeadPage{More: true}); page.More; {
		var err error
		page, err = b.Dead(t.Context(), page.Next, limit)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page.Dead), limit)
		for _, d := range page.Dead {
			require.Equal(t, "reason of "+d.ID, d.Reason)
			list = append(list, d.ID)
		}
		require.LessOrEqual(t, len(list), 100_000, "it loops")
		if meanwhile != nil {
			meanwhile(page)
		}
	}
	return list
}

func TestDeadOfOneMillisecondAreReadOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		all := ids("tie", 2500)
		b.died(t, past, all...)
		b.died(t, past-1, "z-before")
		b.died(t, past+1, "a-after")
		want := slices.Concat([]string{"z-before"}, all, []string{"a-after"})
		require.Equal(t, want, b.readDead(t, 300, nil))
		require.Equal(t, want, b.readDead(t, 2502, nil)) // more than one call a page
	})
}

func TestDeadAreReadOnceWhileTheHeadIsDiscarded(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		all := ids("tie", 500)
		b.died(t, past, all...)
		got := b.readDead(t, 60, func(p persist.DeadPage) {
			for i, d := range p.Dead {
				var err error
				if i%2 == 0 {
					_, err = b.Discard(t.Context(), []string{d.ID})
				} else {
					_, err = b.Requeue(t.Context(), []string{d.ID})
				}
				require.NoError(t, err)
			}
		})
		require.Equal(t, all, got)
		require.Empty(t, b.allDead(t))
		require.Len(t, b.stored(t).Due, 250)
		require.Empty(t, b.stored(t).Reasons)
	})
}

func TestDeadAreReadOnceWhileMoreDieOnBothSides(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		b.died(t, past, ids("m", 300)...)
		n := 0
		got := b.readDead(t, 50, func(persist.DeadPage) {
			if n < 5 {
				b.died(t, past, ids("a"+strings.Repeat("a", n), 20)...) // behind the cursor
				b.died(t, past, ids("z"+strings.Repeat("z", n), 20)...) // ahead of it
				n++
			}
		})
		want := ids("m", 300)
		for k := range n {
			want = append(want, ids("z"+strings.Repeat("z", k), 20)...)
		}
		slices.Sort(want)
		require.Equal(t, want, got)
	})
}

func TestTheOrderOfTheDeadIsByBurialThenByBytes(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		inOrder := []string{"\x00", "\x00a", " ", "-", "A", "Z", "a", "a\x00", "aa", "z", "Ä", "订单", "\xff"}
		shuffled := slices.Clone(inOrder)
		slices.Reverse(shuffled)
		b.died(t, past, shuffled...)
		b.died(t, past-1, "zz")
		for limit := 1; limit <= len(inOrder)+1; limit++ {
			require.Equal(t, append([]string{"zz"}, inOrder...), b.readDead(t, limit, nil), "limit %d", limit)
		}
	})
}

func TestAnEmptyPageOfTheDeadStaysWhereItIs(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		page, err := b.Dead(t.Context(), persist.Cursor{}, 10)
		require.NoError(t, err)
		require.Equal(t, persist.DeadPage{}, page)
		b.died(t, 10, "a")
		for _, after := range []persist.Cursor{{DueMS: 10, ID: "a"}, {DueMS: 10, ID: "b\x00"}, {DueMS: 11}, {DueMS: math.MaxInt64}} {
			page, err := b.Dead(t.Context(), after, 10)
			require.NoError(t, err)
			require.Equal(t, persist.DeadPage{Next: after}, page)
		}
		for _, after := range []persist.Cursor{{}, {DueMS: -1, ID: "x"}, {DueMS: 9, ID: "z"}, {DueMS: 10}} {
			page, err := b.Dead(t.Context(), after, 10)
			require.NoError(t, err)
			require.Len(t, page.Dead, 1)
			require.Equal(t, persist.Cursor{DueMS: 10, ID: "a"}, page.Next)
			require.False(t, page.More)
		}
	})
}

func TestAReadOfTheDeadThatFailedCoversTheSameRangeAgain(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		all := ids("x", 10)
		b.died(t, past, all...)
		first, err := b.Dead(t.Context(), persist.Cursor{}, 5)
		require.NoError(t, err)
		require.True(t, first.More)

		require.NoError(t, b.client.Rename(t.Context(), keyReasons, "kept").Err())
		require.NoError(t, b.client.Set(t.Context(), keyReasons, "not a hash", 0).Err())
		failed, err := b.Dead(t.Context(), first.Next, 5)
		require.ErrorIs(t, err, persist.ErrFatal)
		require.Equal(t, first.Next, failed.Next)

		require.NoError(t, b.client.Rename(t.Context(), "kept", keyReasons).Err())
		second, err := b.Dead(t.Context(), failed.Next, 5)
		require.NoError(t, err)
		require.False(t, second.More)
		for i, d := range append(first.Dead, second.Dead...) {
			require.Equal(t, all[i], d.ID)
		}
	})
}

// An id that a hand put among the dead while it lives is no dead one: it is left out, and the
// pages go on behind it.
func TestPagesOfTheDeadGoOnBehindThoseThatLive(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		b.died(t, past, "a-dead", "living-000020-dead", "z-dead")
		for _, page := range []struct{ living, limit int }{{40, 1}, {40, 2}, {40, 3}, {2100, 300}, {2100, 5000}} {
			living := ids("living", page.living)
			b.scheduled(t, past, living...)
			b.died(t, past, living...)
			require.Equal(t, []string{"a-dead", "living-000020-dead", "z-dead"}, b.readDead(t, page.limit, nil), "%+v", page)
		}
	})
}

// A score that no clock shows comes from a hand. One beyond year 9999 has no place among the
// pages until the round of Reap has brought it into range.
func TestDeadWithABrokenTimeAreFoundInTheEnd(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		b.died(t, past, "c")
		for id, score := range map[string]float64{"a": -5, "b": 999.25, "d": 1e15, "e": math.Inf(1)} {
			b.died(t, past, id)
			require.NoError(t, b.client.ZAdd(t.Context(), keyDead, redis.Z{Score: score, Member: id}).Err())
		}
		require.Equal(t, []string{"a", "b", "c"}, b.readDead(t, 1, nil))
		require.EqualValues(t, 1000, b.allDead(t)[1].BuriedMS)
		for range 2 { // the claims, then the reasons
			_, err := b.Reap(t.Context(), 1)
			require.NoError(t, err)
		}
		require.Equal(t, []string{"a", "b", "c", "d", "e"}, b.readDead(t, 1, nil))
		require.Equal(t, strconv.Itoa(persist.MaxDueMS), b.stored(t).Dead["e"])
		got, err := b.Discard(t.Context(), []string{"a", "b", "c", "d", "e"})
		require.NoError(t, err)
		require.NotContains(t, got, false)
		b.requireEmpty(t)
	})
}

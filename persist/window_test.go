package persist_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/orderwheel/orderwheel/persist"
	"github.com/stretchr/testify/require"
)

// readAll reads all pages; between two of them it calls meanwhile.
func (b bed) readAll(t *testing.T, limit int, meanwhile func(persist.Page)) (list []string) {
	t.Helper()
	for page := (persist.Page{More: true}); page.More; {
		var err error
		page, err = b.Window(t.Context(), page.Next, persist.MaxDueMS, limit)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page.Due), limit)
		for _, d := range page.Due {
			list = append(list, d.ID)
		}
		require.LessOrEqual(t, len(list), 100_000, "it loops")
		if meanwhile != nil {
			meanwhile(page)
		}
	}
	return list
}

func TestATieLargerThanAPageIsReadOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		all := ids("tie", 2500)
		b.scheduled(t, past, all...)
		b.scheduled(t, past-1, "before")
		b.scheduled(t, past+1, "after")
		want := slices.Concat([]string{"before"}, all, []string{"after"})
		require.Equal(t, want, b.readAll(t, 300, nil))
		require.Equal(t, want, b.readAll(t, 2502, nil)) // more than one call a page
	})
}

func TestATieIsReadOnceWhileItsHeadIsRemoved(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		all := ids("tie", 500)
		b.scheduled(t, past, all...)
		got := b.readAll(t, 60, func(p persist.Page) {
			// All that was read, the cursor's own id with it, leaves.
			for _, d := range p.Due {
				_, err := b.Cancel(t.Context(), []string{d.ID})
				require.NoError(t, err)
			}
		})
		require.Equal(t, all, got)
		b.requireEmpty(t)
	})
}

func TestATieIsReadOnceWhileItGrowsOnBothSides(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		b.scheduled(t, past, ids("m", 300)...)
		n := 0
		got := b.readAll(t, 50, func(persist.Page) {
			if n < 5 {
				b.scheduled(t, past, ids("a"+strings.Repeat("a", n), 20)...) // behind the cursor
				b.scheduled(t, past, ids("z"+strings.Repeat("z", n), 20)...) // ahead of it
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

func TestTheOrderIsByDueTimeThenByBytes(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		// A locale would sort case, accents and signs its own way, and C strings end
		// at a NUL.
		inOrder := []string{"\x00", "\x00\x00", "\x00a", " ", "-", "A", "B", "Z", "a", "a\x00", "a\x00b", "aa", "b", "z", "Ä", "ä", "订单", "\xff"}
		shuffled := slices.Clone(inOrder)
		slices.Reverse(shuffled)
		b.scheduled(t, past, shuffled...)
		for limit := 1; limit <= len(inOrder); limit++ {
			require.Equal(t, inOrder, b.readAll(t, limit, nil), "limit %d", limit)
		}
	})
}

func TestAWindowEndsAtItsBound(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		require.NoError(t, b.Schedule(t.Context(), []persist.Due{{ID: "a", DueMS: 10}, {ID: "b", DueMS: 20}, {ID: "c", DueMS: 21}}))
		page, err := b.Window(t.Context(), persist.Cursor{}, 20, 10)
		require.NoError(t, err)
		require.Equal(t, []persist.Due{{ID: "a", DueMS: 10}, {ID: "b", DueMS: 20}}, page.Due)
		require.False(t, page.More)
		require.Equal(t, persist.Cursor{DueMS: 20, ID: "b"}, page.Next)

		page, err = b.Window(t.Context(), persist.Cursor{}, 20, 2)
		require.NoError(t, err)
		require.False(t, page.More, "what is beyond the bound is not more")

		page, err = b.Window(t.Context(), persist.Cursor{}, 21, 2)
		require.NoError(t, err)
		require.True(t, page.More)
	})
}

func TestAnEmptyWindowStaysWhereItIs(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		b.scheduled(t, 10, "a")
		for _, after := range []persist.Cursor{{DueMS: 10, ID: "a"}, {DueMS: 10, ID: "b"}, {DueMS: 11}, {DueMS: math.MaxInt64}} {
			page, err := b.Window(t.Context(), after, math.MaxInt64, 10)
			require.NoError(t, err)
			require.Empty(t, page.Due)
			require.False(t, page.More)
			require.Equal(t, after, page.Next)
		}
		for _, after := range []persist.Cursor{{}, {DueMS: -1, ID: "x"}, {DueMS: 9, ID: "z"}, {DueMS: 10}} {
			page, err := b.Window(t.Context(), after, math.MaxInt64, 10)
			require.NoError(t, err)
			require.Len(t, page.Due, 1)
		}
		page, err := b.Window(t.Context(), persist.Cursor{}, -1, 10)
		require.NoError(t, err)
		require.Empty(t, page.Due)
	})
}

// Case 70: the head of the ZSet is what counts, not how many stand behind it.
func TestOneDueTaskIsFoundAmongAThousandFarOnes(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		b.scheduled(t, future, ids("a-far", 1000)...)
		b.scheduled(t, past, "z-due")
		page, err := b.Window(t.Context(), persist.Cursor{}, b.nowMS(t), 10)
		require.NoError(t, err)
		require.Equal(t, []persist.Due{{ID: "z-due", DueMS: past}}, page.Due)
		b.claimed(t, "tok", 0+1, "z-due")
	})
}

// Case 42: the cursor is the caller's, so a read that failed has moved nothing.
func TestAReadThatFailedCoversTheSameRangeAgain(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		b.scheduled(t, past, ids("x", 10)...)
		first, err := b.Window(t.Context(), persist.Cursor{}, past, 5)
		require.NoError(t, err)

		require.NoError(t, b.client.Rename(t.Context(), keyDue, "kept").Err())
		require.NoError(t, b.client.Set(t.Context(), keyDue, "not a sorted set", 0).Err())
		failed, err := b.Window(t.Context(), first.Next, past, 5)
		require.ErrorIs(t, err, persist.ErrFatal)
		require.Equal(t, first.Next, failed.Next)

		require.NoError(t, b.client.Rename(t.Context(), "kept", keyDue).Err())
		second, err := b.Window(t.Context(), failed.Next, past, 5)
		require.NoError(t, err)
		require.Equal(t, ids("x", 10)[5:], []string{second.Due[0].ID, second.Due[1].ID, second.Due[2].ID, second.Due[3].ID, second.Due[4].ID})
	})
}

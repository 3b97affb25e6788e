package persisttest

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/persist"
)

// windows is reading what is due.
var windows = []conformance{
	{"a tie larger than a page is read once", func(t *testing.T, b *bed) {
		all := names("tie", b.tie())
		b.schedule(t, past, all...)
		b.schedule(t, past-1, "before")
		b.schedule(t, past+1, "after")
		want := slices.Concat([]string{"before"}, all, []string{"after"})
		require.Equal(t, want, dueIDs(b.readDue(t, 300, nil)))
		require.Equal(t, want, dueIDs(b.readDue(t, len(want), nil)), "more than MaxBatch a page")
	}},
	{"a tie is read once while all that was read is removed", func(t *testing.T, b *bed) {
		all := names("tie", b.tie())
		b.schedule(t, past, all...)
		got := b.readDue(t, 250, func(p persist.Page) { b.cancel(t, dueIDs(p.Due)...) })
		require.Equal(t, all, dueIDs(got))
		b.requireEmpty(t)
	}},
	{"a tie is read once while it grows behind the cursor and ahead of it", func(t *testing.T, b *bed) {
		all := names("m", b.tie())
		b.schedule(t, past, all...)
		want := slices.Clone(all)
		n := 0
		got := b.readDue(t, b.tie()/6, func(persist.Page) {
			if n++; n <= 5 {
				b.schedule(t, past, names("a", 20*n)...)
				b.schedule(t, past, names("z", 20*n)...)
			}
		})
		want = append(want, names("z", 100)...)
		require.Equal(t, want, dueIDs(got))
	}},
	{"what is removed ahead of the cursor is not read", func(t *testing.T, b *bed) {
		all := names("tie", 1000)
		b.schedule(t, past, all...)
		first := true
		got := b.readDue(t, 100, func(persist.Page) {
			if first {
				b.cancel(t, all[500:900]...)
			}
			first = false
		})
		require.Equal(t, slices.Concat(all[:500], all[900:]), dueIDs(got))
	}},
	{"the order is by due time, then by bytes", func(t *testing.T, b *bed) {
		reversed := slices.Clone(byBytes)
		slices.Reverse(reversed)
		b.schedule(t, past, reversed...)
		b.schedule(t, past-1, "zz")
		want := append([]string{"zz"}, byBytes...)
		for limit := 1; limit <= len(want)+1; limit++ {
			require.Equal(t, want, dueIDs(b.readDue(t, limit, nil)), "limit %d", limit)
		}
	}},
	{"due times 0 and MaxDueMS are the ends of the order", func(t *testing.T, b *bed) {
		list := []persist.Due{{ID: "\x00", DueMS: 0}, {ID: "a", DueMS: 0}, {ID: "a2", DueMS: 1}, {ID: "z", DueMS: persist.MaxDueMS - 1}, {ID: "last", DueMS: persist.MaxDueMS}}
		require.NoError(t, b.Schedule(b.ctx, list))
		require.Equal(t, list, b.readDue(t, 1, nil))
		require.Equal(t, persist.Claimed, b.claim(t, token, time.Hour, "a").Claims[0].State)
		require.Equal(t, persist.NotYet, b.claim(t, token, time.Hour, "last").Claims[0].State)
	}},
	{"a window ends at its bound", func(t *testing.T, b *bed) {
		require.NoError(t, b.Schedule(b.ctx, []persist.Due{{ID: "a", DueMS: 10}, {ID: "b", DueMS: 20}, {ID: "c", DueMS: 21}}))
		for _, line := range []struct {
			until int64
			limit int
			ids   []string
			more  bool
		}{
			{20, 10, []string{"a", "b"}, false},
			{20, 2, []string{"a", "b"}, false}, // what is beyond the bound is not more
			{20, 1, []string{"a"}, true},
			{21, 2, []string{"a", "b"}, true},
			{math.MaxInt64, 10, []string{"a", "b", "c"}, false},
			{9, 10, nil, false},
			{-1, 10, nil, false},
			{math.MinInt64, 10, nil, false},
		} {
			page, err := b.Window(b.ctx, persist.Cursor{}, line.until, line.limit)
			require.NoError(t, err)
			require.Equal(t, line.ids, dueIDs(page.Due), "%+v", line)
			require.Equal(t, line.more, page.More, "%+v", line)
			if n := len(page.Due); n > 0 {
				require.Equal(t, persist.Cursor{DueMS: page.Due[n-1].DueMS, ID: page.Due[n-1].ID}, page.Next)
			}
		}
	}},
	{"an empty window stays where it is", func(t *testing.T, b *bed) {
		b.schedule(t, 10, "a")
		for _, after := range []persist.Cursor{{DueMS: 10, ID: "a"}, {DueMS: 10, ID: "b"}, {DueMS: 11}, {DueMS: math.MaxInt64}} {
			page, err := b.Window(b.ctx, after, math.MaxInt64, 10)
			require.NoError(t, err)
			require.Empty(t, page.Due)
			require.False(t, page.More)
			require.Equal(t, after, page.Next)
		}
	}},
	{"a cursor needs no task at its place", func(t *testing.T, b *bed) {
		b.schedule(t, 10, "a")
		for _, after := range []persist.Cursor{{}, {ID: "x"}, {DueMS: -1, ID: "x"}, {DueMS: math.MinInt64}, {DueMS: 9, ID: "z"}, {DueMS: 10}, {DueMS: 10, ID: "A"}} {
			page, err := b.Window(b.ctx, after, math.MaxInt64, 10)
			require.NoError(t, err)
			require.Len(t, page.Due, 1, "%+v", after)
		}
	}},
	{"one due task is found among a thousand far ones", func(t *testing.T, b *bed) { // case 70
		b.schedule(t, future, names("a-far", 1000)...)
		b.schedule(t, past, "z-due")
		page, err := b.Window(b.ctx, persist.Cursor{}, b.nowMS(t), 10)
		require.NoError(t, err)
		require.Equal(t, []persist.Due{{ID: "z-due", DueMS: past}}, page.Due)
	}},
	{"only what is due is in a window", func(t *testing.T, b *bed) {
		b.oneOfEach(t)
		require.Equal(t, []string{"there"}, dueIDs(b.readDue(t, 10, nil)))
	}},
	{"a page tells the clock", func(t *testing.T, b *bed) {
		before := b.nowMS(t)
		page, err := b.Window(b.ctx, persist.Cursor{}, future, 10)
		require.NoError(t, err)
		require.GreaterOrEqual(t, page.Clock.StoreUS/1000, before)
		requireSample(t, page.Clock)
	}},
}

func dueIDs(list []persist.Due) (ids []string) {
	for _, d := range list {
		ids = append(ids, d.ID)
	}
	return ids
}

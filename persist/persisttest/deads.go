package persisttest

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/persist"
)

// deads is reading what is dead. A clock that goes by itself spreads the burials over
// a few milliseconds, but those of one chunk share theirs.
var deads = []conformance{
	{"a tie of the dead larger than a page is read once", func(t *testing.T, b *bed) {
		all := names("tie", b.tie())
		b.kill(t, all...)
		require.ElementsMatch(t, all, deadIDs(b.readDead(t, 300, nil)))
		require.Equal(t, deadIDs(b.readDead(t, 300, nil)), deadIDs(b.readDead(t, len(all)+1, nil)), "more than MaxBatch a page")
	}},
	{"the dead are read once while those that were read leave", func(t *testing.T, b *bed) {
		all := names("tie", b.tie())
		b.kill(t, all...)
		n := 0
		got := b.readDead(t, 250, func(p persist.DeadPage) {
			if n++; n%2 == 0 {
				b.discard(t, deadIDs(p.Dead)...)
			} else {
				b.requeue(t, deadIDs(p.Dead)...)
			}
		})
		require.ElementsMatch(t, all, deadIDs(got))
		require.Zero(t, b.depth(t).Dead)
	}},
	{"the dead are read once while others die", func(t *testing.T, b *bed) {
		all := names("m", b.tie())
		b.kill(t, all...)
		n := 0
		got := b.readDead(t, b.tie()/6, func(persist.DeadPage) {
			if n++; n <= 5 {
				b.kill(t, names("a"+string(rune('0'+n)), 20)...)
				b.kill(t, names("z"+string(rune('0'+n)), 20)...)
			}
		})
		read := map[string]int{}
		for _, d := range got {
			read[d.ID]++
			require.Equal(t, 1, read[d.ID], "%s was read twice", d.ID)
		}
		for _, id := range all {
			require.Equal(t, 1, read[id], "%s was not read", id)
		}
	}},
	{"the dead are in the order of their burials, then by bytes", func(t *testing.T, b *bed) {
		reversed := slices.Clone(byBytes)
		slices.Reverse(reversed)
		b.kill(t, "first")
		b.pass(t, 1)
		b.kill(t, reversed...)
		b.pass(t, 1)
		b.kill(t, "a last one")
		want := slices.Concat([]string{"first"}, byBytes, []string{"a last one"})
		if b.Shard != nil { // each has buried by its own clock
			at := map[string]int64{}
			for _, r := range b.lookup(t, want...) {
				at[r.ID] = r.BuriedMS
			}
			slices.SortStableFunc(want[1:len(want)-1], func(a, b string) int { return cmp.Compare(at[a], at[b]) })
		}
		for limit := 1; limit <= len(want)+1; limit++ {
			require.Equal(t, want, deadIDs(b.readDead(t, limit, nil)), "limit %d", limit)
		}
	}},
	{"a dead task says when, why, and what it was", func(t *testing.T, b *bed) {
		b.startLost(t, "x")
		before := b.nowMS(t)
		b.bury(t, token, "card refused", "x")
		after := b.nowMS(t)
		page, err := b.Dead(b.ctx, persist.Cursor{}, 10)
		require.NoError(t, err)
		require.Len(t, page.Dead, 1)
		require.False(t, page.More)
		d := page.Dead[0]
		require.True(t, before <= d.BuriedMS && d.BuriedMS <= after)
		require.Equal(t, persist.Dead{ID: "x", BuriedMS: d.BuriedMS, FirstDueMS: past, Attempt: 2, Reason: "card refused"}, d)
		require.Equal(t, persist.Cursor{DueMS: d.BuriedMS, ID: "x"}, page.Next)
	}},
	{"a page of no dead stays where it is", func(t *testing.T, b *bed) {
		b.kill(t, "x")
		b.schedule(t, past, "due")
		for _, after := range []persist.Cursor{{DueMS: persist.MaxDueMS}, {DueMS: math.MaxInt64, ID: "x"}} {
			page, err := b.Dead(b.ctx, after, 10)
			require.NoError(t, err)
			require.Empty(t, page.Dead)
			require.False(t, page.More)
			require.Equal(t, after, page.Next)
		}
		for _, after := range []persist.Cursor{{}, {DueMS: -1, ID: "x"}, {DueMS: 1}} {
			page, err := b.Dead(b.ctx, after, 10)
			require.NoError(t, err)
			require.Len(t, page.Dead, 1, "%+v", after)
		}
	}},
	{"a limit of the page leaves more", func(t *testing.T, b *bed) {
		ids := b.near("a", "b")
		b.kill(t, ids...)
		page, err := b.Dead(b.ctx, persist.Cursor{}, 1)
		require.NoError(t, err)
		require.Equal(t, ids[:1], deadIDs(page.Dead))
		require.True(t, page.More)
		page, err = b.Dead(b.ctx, persist.Cursor{}, 2)
		require.NoError(t, err)
		require.False(t, page.More)
	}},
	{"the dead do not come back by themselves", func(t *testing.T, b *bed) { // case 123
		b.startOver(t, "x")
		require.Equal(t, persist.Settled, b.bury(t, token, "gone wrong", "x")[0].State)
		b.pass(t, 2)
		require.Empty(t, b.reap(t, 10))
		require.Equal(t, persist.Gone, b.claim(t, "tok2", time.Hour, "x").Claims[0].State)
		require.Equal(t, persist.NotFound, b.cancel(t, "x")[0])
		require.Equal(t, persist.Depth{Dead: 1}, b.depth(t))
	}},
	{"depth counts each place", func(t *testing.T, b *bed) {
		b.schedule(t, past, names("due", 3)...)
		b.schedule(t, future, names("later", 4)...)
		b.startOver(t, "over")
		b.start(t, "running")
		b.kill(t, names("dead", 5)...)
		require.Equal(t, persist.Depth{Due: 7, Running: 2, Dead: 5}, b.depth(t))
	}},
}

func deadIDs(list []persist.Dead) (ids []string) {
	for _, d := range list {
		ids = append(ids, d.ID)
	}
	return ids
}

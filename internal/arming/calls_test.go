package arming

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/wheel"
)

func TestAnOpenCallBlocksItsIdUntilTheLastOfThemHasEnded(t *testing.T) {
	t.Parallel()
	var c Calls
	require.False(t, c.Blocks("A"))
	c.Begin("A")
	c.Begin("A")
	require.True(t, c.Blocks("A"))
	require.False(t, c.Blocks("B"))
	c.End("A", Answered)
	require.True(t, c.Blocks("A"))
	c.End("A", Refused)
	require.False(t, c.Blocks("A"))
	require.Empty(t, c.mu.open)
	require.Empty(t, c.mu.unknown)
}

func TestAnUnknownOutcomeBlocksUntilALaterCallOrClaimIsAnswered(t *testing.T) {
	t.Parallel()
	end := func(c *Calls, how End) {
		c.Begin("A")
		c.End("A", how)
	}
	for name, ends := range map[string]struct {
		by   func(c *Calls, before, after uint64)
		want bool // it blocks still
	}{
		"answered":         {func(c *Calls, _, _ uint64) { end(c, Answered) }, false},
		"refused":          {func(c *Calls, _, _ uint64) { end(c, Refused) }, true},
		"unknown again":    {func(c *Calls, _, after uint64) { end(c, Unknown); c.Claimed(after, []string{"A"}) }, true},
		"claimed":          {func(c *Calls, _, after uint64) { c.Claimed(after, []string{"A"}) }, false},
		"claimed before":   {func(c *Calls, before, _ uint64) { c.Claimed(before, []string{"A"}) }, true},
		"another, claimed": {func(c *Calls, _, after uint64) { c.Claimed(after, []string{"B"}) }, true},
	} {
		var c Calls
		before := c.Seq()
		end(&c, Unknown)
		require.True(t, c.Blocks("A"))
		ends.by(&c, before, c.Seq())
		require.Equal(t, ends.want, c.Blocks("A"), name)
	}
}

func TestUnknownOutcomesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Calls
		for i := range maxUnknown {
			c.Begin(fmt.Sprint(i))
			c.End(fmt.Sprint(i), Unknown)
		}
		require.False(t, c.Full())
		require.False(t, c.Blocks("A"))
		c.Begin("0")
		c.End("0", Unknown)
		require.False(t, c.Full(), "it is known already")
		time.Sleep(unknownFor / 2)
		c.Begin("more")
		c.End("more", Unknown)
		require.True(t, c.Full())
		require.True(t, c.Blocks("A"), "each may be the one that was not noted")
		require.Len(t, c.mu.unknown, maxUnknown)
		time.Sleep(unknownFor)
		require.False(t, c.Full())
		require.False(t, c.Blocks("7"))
		c.Begin("more")
		c.End("more", Unknown)
		require.Len(t, c.mu.unknown, 1, "what has expired is forgotten")
		require.True(t, c.Blocks("more"))
	})
}

func TestWhatTheUserSaidLastOverrulesWhatWasFiredOrReadBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := setup(t)
		due := []wheel.Due{{ID: "later", DueMS: 5}, {ID: "earlier", DueMS: 5}, {ID: "cancelled", DueMS: 5}, {ID: "other", DueMS: 5}}
		require.Empty(t, b.Overruled(due, nil))
		b.UserScheduled("later", 9)
		b.UserScheduled("other", 5)
		b.UserScheduled("earlier", 3)
		b.UserScheduled("cancelled", 4)
		b.UserCancelled("cancelled")
		want := map[int]int64{0: 9, 1: 3, 2: Never}
		require.Equal(t, want, b.Overruled(due, nil))
		time.Sleep(limbo - time.Millisecond)
		b.UserScheduled("another", 1)
		require.Equal(t, want, b.Overruled(due, nil), "whatever else comes meanwhile")
		require.Equal(t, map[int]int64{0: 9, 1: 3, 2: Never}, b.Overruled(due, map[int]int64{1: 4, 3: Never}), "the last word")
		time.Sleep(2 * limbo)
		require.Empty(t, b.Overruled(due, nil), "nothing is on its way for so long")

		page := b.Ask()
		b.UserScheduled("later", 9)
		time.Sleep(time.Minute)
		b.UserScheduled("another", 1)
		time.Sleep(time.Minute)
		b.UserScheduled("another", 1)
		require.Equal(t, map[int]int64{0: 9}, b.Overruled(due, nil), "a page that is being read may be as old")
		b.End(page)
		require.Empty(t, b.Overruled(due, nil))
		require.LessOrEqual(t, len(b.mu.recent.gens[0])+len(b.mu.recent.gens[1]), 2)
	})
}

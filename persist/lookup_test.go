package persist_test

import (
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/persist"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestLookupTellsAllThatIsKnown(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		running := persist.Record{Status: persist.StatusRunning, FirstDueMS: past, Attempt: 1}
		with := func(change func(*persist.Record)) persist.Record {
			r := running
			change(&r)
			return r
		}
		for from, want := range map[string]persist.Record{
			"gone":   {},
			"due":    {Status: persist.StatusDue, DueMS: past},
			"later":  {Status: persist.StatusDue, DueMS: future},
			"retry":  {Status: persist.StatusDue, DueMS: 2_000, FirstDueMS: past, Attempt: 1},
			"lost":   {Status: persist.StatusDue, DueMS: 2_000, FirstDueMS: past, Attempt: 1, Lost: true},
			"run":    running,
			"run+c":  with(func(r *persist.Record) { r.Cancelled = true }),
			"run+sc": with(func(r *persist.Record) { r.Cancelled = true }),
			"run+s":  with(func(r *persist.Record) { r.Successor = future }),
			"run+cs": with(func(r *persist.Record) { r.Successor = future }),
			"dead":   {Status: persist.StatusDead, FirstDueMS: past, Attempt: 1, Reason: "broken"},
		} {
			b.client.FlushAll(t.Context())
			before := b.nowMS(t)
			start(t, b, from)
			after := b.nowMS(t)
			stored := b.stored(t)
			got := lookupX(t, b)
			switch got.Status {
			case persist.StatusRunning:
				require.GreaterOrEqual(t, got.LeaseMS, before+time.Hour.Milliseconds())
				require.LessOrEqual(t, got.LeaseMS, after+time.Hour.Milliseconds())
				want.LeaseMS = got.LeaseMS
			case persist.StatusDead:
				require.True(t, before <= got.BuriedMS && got.BuriedMS <= after)
				want.BuriedMS = got.BuriedMS
			}
			want.ID = "x"
			require.Equal(t, want, got, from)
			require.Equal(t, stored, b.stored(t), "a look changes nothing")
		}
	})
}

func TestLookupAnswersInTheOrderAsked(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		b.scheduled(t, past, oddIDs...)
		asked := append([]string{"nobody", oddIDs[3]}, oddIDs...)
		got, err := b.Lookup(t.Context(), asked)
		require.NoError(t, err)
		require.Len(t, got, len(asked))
		for i, r := range got {
			require.Equal(t, asked[i], r.ID)
			require.Equal(t, i > 0, r.Status == persist.StatusDue)
		}
	})
}

func TestDepthCountsEachPlace(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		depth, err := b.Depth(t.Context())
		require.NoError(t, err)
		require.Equal(t, persist.Depth{}, depth)
		start(t, b, "dead")
		b.scheduled(t, past, "a", "b", "c", "d", "e")
		b.claimed(t, "tok", time.Hour, "a", "b")
		depth, err = b.Depth(t.Context())
		require.NoError(t, err)
		require.Equal(t, persist.Depth{Due: 3, Running: 2, Dead: 1}, depth)
	})
}

// Depth is what a scrape asks every second (cases 79 and 80): three counts, whatever else
// an ACL forbids.
func TestDepthCountsAndDoesNothingElse(t *testing.T) {
	t.Parallel()
	b := setupReal(t)
	start(t, b, "dead")
	b.scheduled(t, past, "due1", "due2", "due3", "run1", "run2")
	b.claimed(t, "tok", time.Hour, "run1", "run2")
	do(t, b.client, "ACL", "SETUSER", "scraper", "on", ">pw", "~*", "-@all", "+evalsha", "+eval", "+zcard", "+hello", "+client")
	c := redis.NewClient(&redis.Options{Addr: b.server.Addr(), ContextTimeoutEnabled: true, Username: "scraper", Password: "pw"})
	t.Cleanup(func() { _ = c.Close() })
	depth, err := newStore(t, c).Depth(bounded(t))
	require.NoError(t, err)
	require.Equal(t, persist.Depth{Due: 3, Running: 2, Dead: 1}, depth)
}

package persist_test

import (
	"math"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/persist"
)

// Scores beyond year 9999, which only a hand can write, are due never: no page has
// them, and none is read over and over for their sake.
func TestAPageEndsBeforeScoresBeyondAnyTime(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		b.scheduled(t, persist.MaxDueMS, "last")
		for i, id := range ids("never", 1500) {
			score := math.Inf(1)
			if i%2 == 0 {
				score = persist.MaxDueMS + float64(i) + 1
			}
			require.NoError(t, b.client.ZAdd(t.Context(), keyDue, redis.Z{Score: score, Member: id}).Err())
		}
		page, err := b.Window(t.Context(), persist.Cursor{}, persist.MaxDueMS, 1)
		require.NoError(t, err)
		require.Equal(t, []persist.Due{{ID: "last", DueMS: persist.MaxDueMS}}, page.Due)
		require.False(t, page.More)
		page, err = b.Window(t.Context(), page.Next, persist.MaxDueMS, 1000)
		require.NoError(t, err)
		require.Empty(t, page.Due)
		require.False(t, page.More)
	})
}

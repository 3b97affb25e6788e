package persist_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/persist"
)

// requireEpoch fails unless the next Epoch tells that.
func (b bed) requireEpoch(t *testing.T, lost bool, about string) {
	t.Helper()
	got, err := b.Epoch(bounded(t))
	require.NoError(t, err)
	require.Equal(t, lost, got, about)
}

// Case 52.
func TestEpochTellsOnceWhatWasLost(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		b.requireEpoch(t, false, "at first")
		b.requireEpoch(t, false, "nothing happened")
		require.NoError(t, b.client.FlushAll(t.Context()).Err())
		b.requireEpoch(t, true, "all is gone")
		b.requireEpoch(t, false, "it was told")

		for range 5 {
			b.requireEpoch(t, false, "it rises")
		}
		require.NoError(t, b.client.Set(t.Context(), keyEpoch, 2, 0).Err())
		b.requireEpoch(t, true, "an old copy")
		b.requireEpoch(t, false, "it was told")
	})
}

func TestEpochOfSeveralStoresIsOne(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		other := newStore(t, b.client)
		for range 3 {
			b.requireEpoch(t, false, "two raise it")
			lost, err := other.Epoch(bounded(t))
			require.NoError(t, err)
			require.False(t, lost)
		}
		require.NoError(t, b.client.Del(t.Context(), keyEpoch).Err())
		b.requireEpoch(t, true, "both have to learn of it")
		lost, err := other.Epoch(bounded(t))
		require.NoError(t, err)
		require.True(t, lost)
	})
}

// With appendfsync everysec a crash of Redis may lose what it answered last.
func TestEpochTellsThatRedisLostItsTail(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		b.scheduled(t, past, "a")
		before, err := b.client.HGetAll(t.Context(), keySessions).Result()
		require.NoError(t, err)
		b.scheduled(t, past, "b")
		b.requireEpoch(t, false, "nothing was lost")

		require.NoError(t, b.client.ZRem(t.Context(), keyDue, "b").Err())
		require.NoError(t, b.client.HSet(t.Context(), keySessions, before).Err())
		b.requireEpoch(t, false, "nobody can see it yet")
		b.scheduled(t, past, "c")
		b.requireEpoch(t, true, "the flush has shown it")
		b.scheduled(t, past, "d")
		b.requireEpoch(t, false, "it was told")
	})
}

// A call that is made again after a lost answer is no loss.
func TestEpochDoesNotTakeARepetitionForALoss(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupMini(t))
	b.scheduled(t, past, "a")
	p.faults(lostAnswer)
	b.scheduled(t, past, "b")
	b.scheduled(t, past, "c")
	b.requireEpoch(t, false, "all of it was kept")
	require.Len(t, b.stored(t).Due, 3)
}

func TestEpochOfMemoryIsNeverLost(t *testing.T) {
	t.Parallel()
	lost, err := persist.NewMemory(nil).Epoch(t.Context())
	require.NoError(t, err)
	require.False(t, lost)
}

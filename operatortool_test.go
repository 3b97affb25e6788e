package orderwheel_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/executor"
	"github.com/orderwheel/orderwheel/persist"
)

// bury makes these ids dead, as an executor would.
func bury(t *testing.T, rdb redis.UniversalClient, ids ...string) {
	t.Helper()
	store, err := persist.New(rdb, persist.Options{})
	require.NoError(t, err)
	for _, id := range ids {
		require.NoError(t, store.Schedule(t.Context(), []persist.Due{{ID: id, DueMS: 1}}))
		claims, err := store.Claim(t.Context(), "token", []string{id}, time.Minute, 0)
		require.NoError(t, err)
		require.Equal(t, persist.Claimed, claims.Claims[0].State)
		buried, err := store.Bury(t.Context(), []persist.Burial{{Lease: persist.Lease{ID: id, Token: "token"}, Reason: "why"}})
		require.NoError(t, err)
		require.Equal(t, persist.Settled, buried[0].State)
	}
	require.NoError(t, store.Close(t.Context()))
}

// An operator's tool makes an engine, asks, and stops it. Nothing of it is left.
func TestTheOperatorsCallsWorkOnAnEngineThatWasNeverStarted(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		bury(t, rdb, "A", "B", "C")
		tool, err := orderwheel.New(orderwheel.Config{Redis: rdb, Handler: new(runs).handle})
		require.NoError(t, err)
		record, err := tool.Lookup(t.Context(), "A")
		require.NoError(t, err)
		require.Equal(t, persist.StatusDead, record.Status)
		ok, err := tool.Discard(t.Context(), "A")
		require.NoError(t, err)
		require.True(t, ok)
		ok, err = tool.Requeue(t.Context(), "B")
		require.NoError(t, err)
		require.True(t, ok)
		page, err := tool.Dead(t.Context(), persist.Cursor{}, 10)
		require.NoError(t, err)
		require.Len(t, page.Dead, 1)
		depth, err := tool.Depth(t.Context())
		require.NoError(t, err)
		require.Equal(t, persist.Depth{Due: 1, Dead: 1}, depth)
		stop(t, tool)
		require.Zero(t, rdb.Exists(t.Context(), "{orderwheel:0}:sessions").Val(), "its session")

		// One that runs finds what was requeued.
		var r runs
		start(t, rdb, r.handle, func(c *orderwheel.Config) { c.SweepEvery, c.Grace = 5*time.Millisecond, time.Millisecond })
		r.wait(t, 1)
		require.Equal(t, "B", r.tasks[0].ID)
	})
}

// Requeued on an engine that runs it is armed: no sweep is waited for.
func TestWhatIsRequeuedRunsAtOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		bury(t, rdb, "A")
		var r runs
		eng := start(t, rdb, r.handle, func(c *orderwheel.Config) { c.SweepEvery = time.Hour })
		ok, err := eng.Requeue(t.Context(), "A")
		require.NoError(t, err)
		require.True(t, ok)
		r.wait(t, 1)
		empty(t, rdb)
		require.Equal(t, 1, r.tasks[0].Attempt)
		require.Equal(t, executor.FromWheel, r.tasks[0].Source)
	})
}

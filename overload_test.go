package orderwheel_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/persist"
)

// Case 24.
func TestTheTaskOverMaxPendingIsRefusedAndNothingIsLost(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		const most = 10_000
		var r runs
		eng := start(t, rdb, r.handle, func(c *orderwheel.Config) { c.MaxPending = most })
		soon := time.Now().Add(30 * time.Minute)
		list := make([]orderwheel.Due, most)
		for i := range list {
			list[i] = orderwheel.Due{ID: fmt.Sprint(i), At: soon}
		}
		require.NoError(t, eng.ScheduleMany(t.Context(), list))
		well(t, eng)

		require.ErrorIs(t, eng.Schedule(t.Context(), "one more", soon), orderwheel.ErrOverloaded)
		ails(t, eng, "MaxPending")
		require.Eventually(t, func() bool { return eng.Stats().Armed == most }, hang, time.Millisecond, "it is not armed")
		ok, err := eng.Cancel(t.Context(), "one more")
		require.NoError(t, err)
		require.False(t, ok)

		// What is pending moves, beside what is new and refused, in whatever chunk.
		for i := range list {
			list[i].At = time.Now()
		}
		batch := []orderwheel.Due{list[0]}
		for i := range 1500 {
			batch = append(batch, orderwheel.Due{ID: fmt.Sprint("new", i), At: soon})
		}
		batch = append(batch, list[1:]...)
		err = eng.ScheduleMany(t.Context(), batch)
		require.ErrorIs(t, err, orderwheel.ErrOverloaded)
		var partial *persist.PartialError
		require.ErrorAs(t, err, &partial)
		require.False(t, errors.As(partial.Err, new(*persist.PartialError)), "one names the places")
		missing := persist.Missing(err, len(batch))
		require.NotEmpty(t, missing)
		require.Less(t, missing[len(missing)-1], 1501, "what is pending is not refused")
		r.wait(t, most)

		require.NoError(t, eng.Schedule(t.Context(), "one more", soon), "there is room again")
	})
}

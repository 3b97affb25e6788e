package orderwheel_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/internal/redistest"
	"github.com/orderwheel/orderwheel/wheel"
	"github.com/orderwheel/orderwheel/wheel/russellluo"
)

// ails waits until the engine's health names a problem that contains these words.
func ails(t *testing.T, eng *orderwheel.Engine, words string) {
	t.Helper()
	var h orderwheel.Health
	require.Eventually(t, func() bool {
		h = eng.Health()
		return !h.OK && strings.Contains(strings.Join(h.Problems, "\n"), words)
	}, hang, 5*time.Millisecond, "no problem says %q: %+v", words, h)
}

// well waits until there are no problems.
func well(t *testing.T, eng *orderwheel.Engine) {
	t.Helper()
	var h orderwheel.Health
	require.Eventually(t, func() bool { h = eng.Health(); return h.OK }, hang, 5*time.Millisecond, "%+v", h)
	require.Empty(t, h.Problems)
}

func TestAnEngineThatRunsIsWellAndOneThatDoesNotIsNot(t *testing.T) {
	t.Parallel()
	rdb := redistest.Mini(t)
	eng, err := orderwheel.New(orderwheel.Config{Redis: rdb, Handler: new(runs).handle})
	require.NoError(t, err)
	require.Equal(t, orderwheel.Health{Problems: []string{"the engine is not running: it closes nothing"}}, eng.Health())
	require.NoError(t, eng.Start(t.Context()))
	well(t, eng)
	stop(t, eng)
	require.Equal(t, orderwheel.Health{Problems: []string{"the engine is not running: it closes nothing"}}, eng.Health())
}

// A Redis without memory refuses what Schedule writes, and nothing else.
func TestHealthTellsThatRedisRefusesWrites(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rdb := server.Client(t)
	eng := start(t, rdb, new(runs).handle)
	require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	require.Error(t, eng.Schedule(ctx, "A", time.Now().Add(time.Hour)))
	ails(t, eng, "Redis does not serve (degraded)")
	require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory", "0").Err())
	require.NoError(t, eng.Schedule(t.Context(), "A", time.Now().Add(time.Hour)))
	well(t, eng)
}

func TestHealthTellsThatTheWheelStandsStill(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	eng := start(t, redistest.Mini(t), new(runs).handle, func(c *orderwheel.Config) {
		c.Wheel = func(nowMS func() int64) wheel.Wheel { // each of them hangs
			return hangingWheel{russellluo.New(nowMS), make(chan struct{}, 1), release}
		}
	})
	require.NoError(t, eng.Schedule(t.Context(), "hang", time.Now().Add(30*time.Minute)))
	ails(t, eng, "the wheel stands still")
	close(release)
}

package orderwheel_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/executor"
	"github.com/orderwheel/orderwheel/internal/faultproxy"
	"github.com/orderwheel/orderwheel/internal/redistest"
)

// Two instances look for leases that are over all the time.
func TestAHandlerThatOutlastsItsLeaseRunsOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		const lease = 2 * time.Second // far more than the process may be held up
		var r runs
		handler := func(ctx context.Context, task executor.Task) error {
			_ = r.handle(ctx, task)
			select {
			case <-time.After(5 * lease / 2):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		short := func(c *orderwheel.Config) { c.Lease, c.SweepEvery = lease, 10*time.Millisecond }
		engines := []*orderwheel.Engine{start(t, rdb, handler, short), start(t, rdb, handler, short)}
		require.NoError(t, engines[0].Schedule(t.Context(), "A", time.Now()))
		r.wait(t, 1)
		empty(t, rdb)
		require.Equal(t, 1, r.count())
		require.Eventually(t, func() bool {
			return engines[0].Stats().Executor.Done+engines[1].Stats().Executor.Done == 1
		}, hang, time.Millisecond)
	})
}

// Case 110: its ctx ends, then its lease; another worker runs its task in the same
// engine.
func TestATaskWhoseHandlerNeverReturnsRunsAgain(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		leave := make(chan struct{})
		var calls atomic.Int64
		eng := start(t, rdb, func(context.Context, executor.Task) error {
			if calls.Add(1) == 1 {
				<-leave
			}
			return nil
		}, func(c *orderwheel.Config) {
			c.Workers, c.Lease, c.HandlerTimeout, c.SweepEvery = 1, 100*time.Millisecond, 100*time.Millisecond, 10*time.Millisecond
		})
		require.NoError(t, eng.Schedule(t.Context(), "A", time.Now()))
		require.Eventually(t, func() bool { return eng.Stats().Executor.Done == 1 }, hang, time.Millisecond)
		empty(t, rdb)
		require.EqualValues(t, 2, calls.Load())
		require.Equal(t, 1, eng.Stats().Executor.Stuck)
		close(leave)
		require.Eventually(t, func() bool { return eng.Stats().Executor.LeaseLost == 1 }, hang, time.Millisecond)
		require.EqualValues(t, 1, eng.Stats().Executor.Done)
	})
}

// Redis has made the claim and its answer never comes: Stop hands it back, so that no
// instance has to wait for the end of its lease.
func TestStopHandsBackAClaimWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	direct := server.Client(t)
	proxy := faultproxy.Start(t, direct.Options().Addr)
	through := redis.NewClient(&redis.Options{Addr: proxy.Addr(), ContextTimeoutEnabled: true, ReadTimeout: 50 * time.Millisecond})
	t.Cleanup(func() { _ = through.Close() })
	eng := start(t, through, func(context.Context, executor.Task) error { t.Error("ran"); return nil })
	at := time.Now().Add(300 * time.Millisecond)
	require.NoError(t, eng.Schedule(t.Context(), "A", at))
	proxy.SetRule(faultproxy.Only(func(faultproxy.Command) faultproxy.Action { return faultproxy.Do(faultproxy.SwallowReply) }, "evalsha", "eval"))
	running := func() int64 { return direct.ZCard(t.Context(), "{orderwheel:0}:running").Val() }
	require.Eventually(t, func() bool { return running() == 1 }, hang, time.Millisecond)

	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- eng.Stop(ctx) }()
	cancel()
	proxy.SetRule(nil)
	require.NoError(t, <-stopped, "what Stop says in its last second suffices")
	require.Zero(t, running())
	require.EqualValues(t, at.Add(time.Millisecond-1).UnixMilli(), direct.ZScore(t.Context(), "{orderwheel:0}:due", "A").Val())
	require.Empty(t, direct.HGetAll(t.Context(), "{orderwheel:0}:claims").Val(), "it leaves no trace")
}

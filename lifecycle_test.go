package orderwheel_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/executor"
	"github.com/orderwheel/orderwheel/internal/redistest"
	"github.com/orderwheel/orderwheel/persist"
)

// Cases 93, 102, 104: an engine that is started and stopped again and again leaves no
// goroutine, no connection and no task. Not parallel: it counts goroutines.
func TestManyRoundsOfStartAndStopLeaveNothing(t *testing.T) {
	rounds := 100
	if long() {
		rounds = 1000
	}
	server := redistest.Start(t)
	rdb := server.Client(t)
	var r runs
	eng, err := orderwheel.New(orderwheel.Config{Redis: rdb, Handler: r.handle, Workers: 8})
	require.NoError(t, err)
	round := func(i int) {
		require.NoError(t, eng.Start(t.Context()))
		now := time.Now()
		ran, cancelled := fmt.Sprint("runs", i), fmt.Sprint("cancelled", i)
		require.NoError(t, eng.ScheduleMany(t.Context(), []orderwheel.Due{{ID: ran, At: now}, {ID: cancelled, At: now.Add(time.Minute)}}))
		ok, err := eng.Cancel(t.Context(), cancelled)
		require.NoError(t, err)
		require.True(t, ok)
		if i%2 == 0 { // else Stop comes while it is due or at work
			r.wait(t, i+1)
		}
		stop(t, eng)
	}
	// The first leave what lives as long as the process: the client's connections.
	for i := range 4 {
		round(i)
	}
	goroutines, pool := goleak.IgnoreCurrent(), rdb.PoolStats().TotalConns
	for i := range rounds {
		round(i + 4)
	}
	require.NoError(t, goleak.Find(goroutines))
	require.LessOrEqual(t, rdb.PoolStats().TotalConns, pool+2, "connections of the client")
	require.NoError(t, eng.Start(t.Context())) // what Stop left in Redis
	r.wait(t, rounds+4)
	stop(t, eng)
	empty(t, rdb)
	require.Zero(t, rdb.Exists(t.Context(), "{orderwheel:0}:sessions").Val(), "sessions")
	for id, n := range r.byID() {
		require.Equal(t, 1, n, id)
	}
}

// stoppedWithWork is an engine that has been told to stop while its one worker is at work
// and ten more tasks are due.
type stoppedWithWork struct {
	eng     *orderwheel.Engine
	rdb     *redis.Client
	leave   chan struct{} // closed: the handler returns
	handled atomic.Int64
	cut     atomic.Bool // its ctx has ended before it returned
}

func workAndStop(t *testing.T, rdb *redis.Client) *stoppedWithWork {
	w := &stoppedWithWork{rdb: rdb, leave: make(chan struct{})}
	entered := make(chan struct{}, 1)
	var err error
	w.eng, err = orderwheel.New(orderwheel.Config{Redis: rdb, Workers: 1, Handler: func(ctx context.Context, _ executor.Task) error {
		if w.handled.Add(1) == 1 {
			entered <- struct{}{}
			select {
			case <-w.leave:
			case <-ctx.Done():
				w.cut.Store(true)
				<-w.leave
			}
		}
		return ctx.Err()
	}})
	require.NoError(t, err)
	require.NoError(t, w.eng.Start(t.Context()))
	list := make([]orderwheel.Due, 11)
	for i := range list {
		list[i] = orderwheel.Due{ID: fmt.Sprint(i), At: time.Now()}
	}
	require.NoError(t, w.eng.ScheduleMany(t.Context(), list))
	<-entered
	require.Eventually(t, func() bool { return w.eng.Stats().Executor.Ready == 10 }, hang, time.Millisecond)
	return w
}

func (w *stoppedWithWork) depth(t *testing.T) persist.Depth {
	t.Helper()
	d, err := w.eng.Depth(t.Context())
	require.NoError(t, err)
	return d
}

func TestStopWaitsForTheHandlerAtWorkAndLeavesWhatWaitsInRedis(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := workAndStop(t, rdb)
		stopped := make(chan error, 1)
		go func() { stopped <- w.eng.Stop(context.Background()) }()
		require.Eventually(t, func() bool { return !w.eng.Health().OK }, hang, time.Millisecond)
		select {
		case err := <-stopped:
			t.Fatalf("Stop did not wait: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
		close(w.leave)
		require.NoError(t, <-stopped)
		require.False(t, w.cut.Load())
		require.EqualValues(t, 1, w.handled.Load(), "nothing new has begun")
		require.Equal(t, persist.Depth{Due: 10}, w.depth(t))

		require.NoError(t, w.eng.Start(t.Context()))
		empty(t, rdb)
		stop(t, w.eng)
		require.EqualValues(t, 11, w.handled.Load())
	})
}

func TestStopWhoseCtxEndsHandsBackWhatIsAtWork(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		w := workAndStop(t, rdb)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, w.eng.Stop(ctx), context.DeadlineExceeded)
		require.Equal(t, persist.Depth{Due: 11}, w.depth(t), "another instance can run all of them at once")
		require.Eventually(t, w.cut.Load, hang, time.Millisecond)
		close(w.leave)
		stop(t, w.eng) // waits for it
		require.EqualValues(t, 1, w.handled.Load())

		require.NoError(t, w.eng.Start(t.Context()))
		empty(t, rdb)
		stop(t, w.eng)
		require.EqualValues(t, 12, w.handled.Load())
	})
}

// Case 7: the process lives, the attempt counts, the task comes again.
func TestAHandlerThatPanicsIsRetriedAndCounted(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		attempts := make(chan int, 3)
		eng := start(t, rdb, func(_ context.Context, task executor.Task) error {
			attempts <- task.Attempt
			if task.Attempt < 3 {
				panic("handler")
			}
			return nil
		}, func(c *orderwheel.Config) { c.Retry.Base = time.Millisecond })
		require.NoError(t, eng.Schedule(t.Context(), "A", time.Now()))
		for want := 1; want <= 3; want++ {
			require.Equal(t, want, <-attempts)
		}
		empty(t, rdb)
		require.EqualValues(t, 2, eng.Stats().Executor.Panicked)
	})
}

// Case 120: the pool is used whole, and no more than that.
func TestAsManyHandlersRunAtOnceAsThereAreWorkers(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		const workers = 8
		var running, most atomic.Int64
		full := make(chan struct{})
		eng := start(t, rdb, func(ctx context.Context, _ executor.Task) error {
			n := running.Add(1)
			defer running.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			if n == workers {
				select {
				case <-full:
				default:
					close(full)
				}
			}
			select {
			case <-full:
				return nil
			case <-ctx.Done():
				return errors.New("the others did not come")
			}
		}, func(c *orderwheel.Config) { c.Workers = workers })
		require.NoError(t, eng.ScheduleMany(t.Context(), dues(100, time.Now().Add(20*time.Millisecond))))
		empty(t, rdb)
		require.EqualValues(t, workers, most.Load())
		require.Zero(t, eng.Stats().Executor.Failed)
	})
}

package orderwheel_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/executor"
	"github.com/orderwheel/orderwheel/internal/logbuffer"
	"github.com/orderwheel/orderwheel/internal/redistest"
	"github.com/orderwheel/orderwheel/persist"
	"github.com/orderwheel/orderwheel/wheel"
	"github.com/orderwheel/orderwheel/wheel/russellluo"
)

// Case 39: five instances share the work; each task runs once.
func TestFiveInstancesRunEachTaskOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	const n = 2000
	var r runs
	engines := make([]*orderwheel.Engine, 5)
	for i := range engines {
		engines[i] = start(t, server.Client(t), r.handle, func(c *orderwheel.Config) {
			c.SweepEvery, c.Grace = 20*time.Millisecond, time.Millisecond
		})
	}
	at := time.Now().Add(300 * time.Millisecond)
	for i := range n {
		require.NoError(t, engines[i%5].Schedule(t.Context(), fmt.Sprint(i), at))
	}
	r.wait(t, n)
	empty(t, server.Client(t))
	require.Len(t, r.byID(), n)
	require.Equal(t, n, r.count())
}

func TestAnotherInstanceTakesOverWhatADeadOneLeft(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		var r runs
		sweeping := func(c *orderwheel.Config) { c.SweepEvery = 10 * time.Millisecond }
		dead := start(t, rdb, r.handle, sweeping)
		alive := start(t, rdb, r.handle, sweeping)
		at := time.Now().Add(50 * time.Millisecond)
		require.NoError(t, dead.Schedule(t.Context(), "A", at))
		stop(t, dead)
		r.wait(t, 1)
		require.Equal(t, executor.FromSweep, r.tasks[0].Source)
		require.Eventually(t, func() bool { return alive.Stats().Recovery.Found == 1 }, hang, time.Millisecond)
		require.Zero(t, alive.Stats().Recovery.Missed, "it was never armed here")
	})
}

// Case 118: the process that ran it is gone; its lease runs out.
func TestATaskWhoseLeaseIsOverRunsAgain(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		store, err := persist.New(rdb, persist.Options{})
		require.NoError(t, err)
		require.NoError(t, store.Schedule(t.Context(), []persist.Due{{ID: "A", DueMS: 1}}))
		claims, err := store.Claim(t.Context(), "of-a-dead-process", []string{"A"}, 50*time.Millisecond, 0)
		require.NoError(t, err)
		require.Equal(t, persist.Claimed, claims.Claims[0].State)
		var r runs
		start(t, rdb, r.handle, func(c *orderwheel.Config) { c.SweepEvery = 10 * time.Millisecond })
		r.wait(t, 1)
		require.Equal(t, 2, r.tasks[0].Attempt)
		require.Equal(t, executor.FromRecovery, r.tasks[0].Source)
		empty(t, rdb)
	})
}

// Cases 36, 83: the outage spans the due time.
func TestWhatComesDueWhileRedisIsAwayRunsWhenItIsBack(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	var log logbuffer.Buffer
	var r runs
	eng := start(t, server.Client(t), r.handle, func(c *orderwheel.Config) {
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	at := time.Now().Add(5 * time.Second)
	for i := range 100 {
		require.NoError(t, eng.Schedule(t.Context(), fmt.Sprint(i), at))
	}
	server.Kill()
	time.Sleep(time.Until(at.Add(100 * time.Millisecond))) // the outage spans the due time
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "redis_away") }, hang, time.Millisecond)
	require.Zero(t, r.count())
	server.Boot()
	r.wait(t, 100)
	empty(t, server.Client(t))
	require.Len(t, r.byID(), 100)
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "redis_back") }, hang, time.Millisecond)
}

// Case 89: a ctx cuts a call that Redis does not answer.
func TestACtxCutsACallThatRedisDoesNotAnswer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	eng := start(t, server.Client(t), new(runs).handle)
	server.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err := eng.Schedule(ctx, "A", time.Now().Add(time.Hour))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, persist.ErrUnknownOutcome)
	// A second call on the id does not hang behind it either.
	ctx2, cancel2 := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel2()
	_, err = eng.Cancel(ctx2, "A")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	server.Resume()
	require.Eventually(t, func() bool {
		_, err := eng.Cancel(t.Context(), "A")
		return err == nil
	}, hang, time.Millisecond)
}

func TestStartSaysWhatIsWrongWithRedis(t *testing.T) {
	t.Parallel()
	t.Run("eviction", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t, "--maxmemory-policy", "allkeys-lru", "--maxmemory", "100mb")
		eng, err := orderwheel.New(orderwheel.Config{Redis: server.Client(t), Handler: new(runs).handle})
		require.NoError(t, err)
		require.ErrorContains(t, eng.Start(t.Context()), "allkeys-lru")
		stop(t, eng)
	})
	t.Run("away", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t)
		server.Kill()
		eng, err := orderwheel.New(orderwheel.Config{Redis: server.Client(t), Handler: new(runs).handle})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, eng.Start(ctx), context.DeadlineExceeded)
		require.ErrorIs(t, eng.Schedule(t.Context(), "A", time.Now()), orderwheel.ErrClosed)
		stop(t, eng)
	})
	t.Run("wrong type", func(t *testing.T) {
		t.Parallel()
		rdb := redistest.Start(t).Client(t)
		require.NoError(t, rdb.Set(t.Context(), "{orderwheel:0}:due", "x", 0).Err())
		eng, err := orderwheel.New(orderwheel.Config{Redis: rdb, Handler: new(runs).handle})
		require.NoError(t, err)
		require.ErrorIs(t, eng.Start(t.Context()), persist.ErrFatal)
		stop(t, eng)
	})
}

type panickingLog struct{ slog.Handler }

func (panickingLog) Enabled(context.Context, slog.Level) bool  { return true }
func (panickingLog) Handle(context.Context, slog.Record) error { panic("logger") }
func (panickingLog) WithAttrs([]slog.Attr) slog.Handler        { panic("logger") }
func (panickingLog) WithGroup(string) slog.Handler             { panic("logger") }

// Case 106: a logger that panics, in a handler's worker and in the engine's own
// goroutines.
func TestALoggerThatPanicsLosesNothing(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	var calls atomic.Int64
	eng := start(t, server.Client(t), func(context.Context, executor.Task) error {
		if calls.Add(1) == 1 {
			panic("handler")
		}
		return nil
	}, func(c *orderwheel.Config) {
		c.Logger = slog.New(panickingLog{})
		c.Retry.Base = time.Millisecond
		c.SweepEvery = time.Millisecond
	})
	require.NoError(t, eng.Schedule(t.Context(), "A", time.Now()))
	require.Eventually(t, func() bool { return calls.Load() == 2 }, hang, time.Millisecond)
	server.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.Error(t, eng.Schedule(ctx, "B", time.Now()))
	server.Boot()
	require.NoError(t, eng.Schedule(t.Context(), "B", time.Now()))
	require.Eventually(t, func() bool { return calls.Load() == 3 }, hang, time.Millisecond)
}

// The store of a Cluster gives each of its shards a logger of its own.
func TestALoggerThatPanicsHoldsUpNoEngineOfACluster(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	t.Cleanup(func() { require.NoError(t, rdb.Close()) })
	for _, log := range []*slog.Logger{slog.New(panickingLog{}), {}} {
		_, err := orderwheel.New(orderwheel.Config{Redis: rdb, Handler: new(runs).handle, Logger: log})
		require.NoError(t, err)
	}
}

// hangingWheel is a wheel whose Schedule of one id does not return, as
// RussellLuo's may.
type hangingWheel struct {
	wheel.Wheel
	entered chan<- struct{} // capacity 1
	release <-chan struct{}
}

func (w hangingWheel) Schedule(id string, dueMS int64) {
	if id == "hang" {
		w.entered <- struct{}{}
		<-w.release
	}
	w.Wheel.Schedule(id, dueMS)
}

// firstHangs makes wheels of which the first hangs, until release. It has entered then.
func firstHangs(release <-chan struct{}) (_ wheel.Factory, entered <-chan struct{}) {
	var made atomic.Int64
	in := make(chan struct{}, 1)
	return func(nowMS func() int64) wheel.Wheel {
		if made.Add(1) == 1 {
			return hangingWheel{russellluo.New(nowMS), in, release}
		}
		return russellluo.New(nowMS)
	}, in
}

func TestAWheelThatHangsHoldsUpNothingAndIsReplaced(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	t.Cleanup(func() { close(release) }) // after the engine has stopped
	var r runs
	eng := start(t, redistest.Mini(t), r.handle, func(c *orderwheel.Config) {
		c.SweepEvery, c.Grace = 5*time.Millisecond, time.Millisecond
		c.Wheel, _ = firstHangs(release)
	})
	require.NoError(t, eng.Schedule(t.Context(), "hang", time.Now().Add(30*time.Minute)))
	for i := range 100 {
		require.NoError(t, eng.Schedule(t.Context(), fmt.Sprint(i), time.Now().Add(time.Duration(i)*time.Millisecond)))
	}
	r.wait(t, 100) // the sweep finds them
	require.Eventually(t, func() bool { return eng.Stats().Recovery.WheelReplaced == 1 }, hang, time.Millisecond)
	require.Eventually(t, func() bool { return eng.Stats().Armed == 1 }, hang, time.Millisecond, "the new one has all")
	stop(t, eng) // the old one is not waited for
}

func TestStopDoesNotWaitForAWheelThatHangs(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	factory, entered := firstHangs(release)
	eng := start(t, redistest.Mini(t), new(runs).handle, func(c *orderwheel.Config) {
		c.SweepEvery = 10 * time.Second // and it is not replaced for twice that
		c.Wheel = factory
	})
	require.NoError(t, eng.Schedule(t.Context(), "hang", time.Now().Add(30*time.Minute)))
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorContains(t, eng.Stop(ctx), "the wheel hangs")
	close(release)
	stop(t, eng)
}

func TestAWheelThatWasNotMadeIsAnErrorOfStart(t *testing.T) {
	t.Parallel()
	rdb := redistest.Mini(t)
	eng, err := orderwheel.New(orderwheel.Config{
		Redis: rdb, Handler: new(runs).handle, Wheel: func(func() int64) wheel.Wheel { return nil },
	})
	require.NoError(t, err)
	require.ErrorContains(t, eng.Start(t.Context()), "Config.Wheel returned nil")
	stop(t, eng)
	empty(t, rdb)
}

// However many Starts wait, Stop ends them all.
func TestStopEndsEveryStartInProgress(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Kill()
	eng, err := orderwheel.New(orderwheel.Config{Redis: server.Client(t), Handler: new(runs).handle})
	require.NoError(t, err)
	var starts sync.WaitGroup
	var begun atomic.Int64
	for range 5 {
		starts.Go(func() {
			begun.Add(1)
			if err := eng.Start(context.Background()); !errors.Is(err, context.Canceled) {
				t.Errorf("Start returned %v", err)
			}
		})
	}
	require.Eventually(t, func() bool { return begun.Load() == 5 }, hang, time.Millisecond)
	time.Sleep(20 * time.Millisecond) // all of them are in
	stop(t, eng)
	starts.Wait()
}

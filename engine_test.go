package orderwheel_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
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
	"github.com/orderwheel/orderwheel/wheel"
	"github.com/orderwheel/orderwheel/wheel/russellluo"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).purgeStaleWorkers"),
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).ticktock"))
}

// hang bounds what must happen but has no speed to keep.
const hang = 20 * time.Second

// onBoth runs a test on miniredis and on a real redis-server.
func onBoth(t *testing.T, test func(t *testing.T, rdb *redis.Client)) {
	t.Run("miniredis", func(t *testing.T) { t.Parallel(); test(t, redistest.Mini(t)) })
	t.Run("redis", func(t *testing.T) { t.Parallel(); test(t, redistest.Start(t).Client(t)) })
}

// runs records what a handler was called for.
type runs struct {
	mu    sync.Mutex
	tasks []executor.Task
	late  []time.Duration // process's clock at entry, less the due time
}

func (r *runs) handle(_ context.Context, t executor.Task) error {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tasks = append(r.tasks, t)
	r.late = append(r.late, now.Sub(t.Due))
	return nil
}

func (r *runs) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.tasks)
}

// byID is how often each id ran.
func (r *runs) byID() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := make(map[string]int)
	for _, t := range r.tasks {
		m[t.ID]++
	}
	return m
}

func (r *runs) wait(t *testing.T, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return r.count() >= n }, hang, time.Millisecond)
}

// start makes an engine and starts it. It is stopped at the end of the test.
func start(t *testing.T, rdb redis.UniversalClient, h executor.Handler, change ...func(*orderwheel.Config)) *orderwheel.Engine {
	t.Helper()
	cfg := orderwheel.Config{Redis: rdb, Handler: h}
	for _, f := range change {
		f(&cfg)
	}
	eng, err := orderwheel.New(cfg)
	require.NoError(t, err)
	require.NoError(t, eng.Start(t.Context()))
	t.Cleanup(func() { stop(t, eng) })
	return eng
}

func stop(t *testing.T, eng *orderwheel.Engine) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	require.NoError(t, eng.Stop(ctx))
}

// empty checks that no key of ours holds anything.
func empty(t *testing.T, rdb *redis.Client) {
	t.Helper()
	var keys []string
	require.Eventually(t, func() bool {
		keys = rdb.Keys(context.Background(), "{*}*").Val()
		return len(keys) == 0
	}, hang, 5*time.Millisecond, "keys left: %v", keys)
}

func TestAConfigsFaultsAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := orderwheel.New(orderwheel.Config{
		Namespace: "no spaces", Workers: -1, Lease: -1, HandlerTimeout: -1, SweepEvery: -1, Grace: -1,
		Retry: orderwheel.Retry{Base: -1, Cap: -2, Jitter: 3},
	})
	for _, want := range []string{"client", "Namespace", "Handler", "Workers is -1", "Lease is -1ns", "HandlerTimeout", "Retry.Base", "Retry.Cap", "Retry.Jitter is 3", "SweepEvery", "Grace"} {
		require.ErrorContains(t, err, want)
	}
	ring := redis.NewRing(&redis.RingOptions{})
	defer ring.Close()
	_, err = orderwheel.New(orderwheel.Config{Redis: ring, Handler: new(runs).handle})
	require.ErrorContains(t, err, "Ring")
	require.Equal(t, 1, strings.Count(err.Error(), "\n")+1)
}

func TestEachTaskRunsOnceAndNothingIsLeft(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		var r runs
		eng := start(t, rdb, r.handle)
		for i := range 100 {
			require.NoError(t, eng.Schedule(t.Context(), fmt.Sprint(i), time.Now().Add(time.Duration(i)*5*time.Millisecond)))
		}
		r.wait(t, 100)
		empty(t, rdb)
		for id, n := range r.byID() {
			require.Equal(t, 1, n, "id %s", id)
		}
		require.Eventually(t, func() bool { return eng.Stats().Executor.Done == 100 }, hang, time.Millisecond)
	})
}

// Case 107: never early, not by one millisecond. The server's clock and the
// process's are the same here.
func TestNoneOf1000RandomMillisecondsIsEarly(t *testing.T) {
	t.Parallel()
	var r runs
	eng := start(t, redistest.Start(t).Client(t), r.handle)
	for i := range 1000 {
		at := time.Now().Add(time.Duration(rand.Int64N(int64(time.Second))))
		require.NoError(t, eng.Schedule(t.Context(), fmt.Sprint(i), at))
	}
	r.wait(t, 1000)
	for i, late := range r.late {
		require.GreaterOrEqual(t, late, time.Duration(0), "task %v", r.tasks[i])
		require.False(t, r.tasks[i].Now.Before(r.tasks[i].Due))
	}
}

// Cases 10, 11: the store's clock decides, whatever the local one says.
func TestAStoreWhoseClockIsBehindMakesNothingEarly(t *testing.T) {
	t.Parallel()
	server, rdb := redistest.MiniServer(t)
	behind := time.Now().Add(-time.Hour)
	server.SetTime(behind)
	var r runs
	eng := start(t, rdb, r.handle, func(c *orderwheel.Config) { c.SweepEvery = 5 * time.Millisecond })
	now, err := eng.Now(t.Context())
	require.NoError(t, err)
	require.Less(t, now, time.Now().Add(-50*time.Minute))
	require.NoError(t, eng.Schedule(t.Context(), "A", behind.Add(10*time.Millisecond)))
	// The local estimate passes the due time, the store's clock stands still:
	// claims are refused.
	require.Eventually(t, func() bool { return eng.Stats().Executor.NotYet > 0 }, hang, time.Millisecond)
	require.Zero(t, r.count())
	server.SetTime(behind.Add(20 * time.Millisecond))
	r.wait(t, 1)
}

// Case 22.
func TestADueTimeInThePastFiresAtOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		var r runs
		eng := start(t, rdb, r.handle, func(c *orderwheel.Config) { c.SweepEvery = time.Hour })
		for id, ago := range map[string]time.Duration{"a": 0, "b": time.Second, "c": 29 * 24 * time.Hour} {
			require.NoError(t, eng.Schedule(t.Context(), id, time.Now().Add(-ago)))
		}
		r.wait(t, 3)
		for _, task := range r.tasks {
			require.Equal(t, executor.FromWheel, task.Source)
		}
	})
}

// Cases 17, 27, 34, 64, 70, 114: the last Schedule wins, an earlier one is not
// waited for, a cancelled id can be used again.
func TestSchedulingAgainMoves(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		ctx := t.Context()
		var r runs
		eng := start(t, rdb, r.handle)
		in := func(id string, d time.Duration) {
			t.Helper()
			require.NoError(t, eng.Schedule(ctx, id, time.Now().Add(d)))
		}
		for i := range 1000 {
			in("far"+fmt.Sprint(i), time.Hour)
		}
		in("sooner", time.Hour)
		in("sooner", 30*time.Millisecond)
		begun := time.Now()
		in("later", 2*time.Second)
		in("later", time.Hour)
		in("moved and cancelled", 2*time.Second)
		in("moved and cancelled", 2*time.Second+50*time.Millisecond)
		ok, err := eng.Cancel(ctx, "moved and cancelled")
		require.NoError(t, err)
		require.True(t, ok)
		for i := range 1000 {
			in("often", time.Duration(1000-i/2)*time.Millisecond)
		}
		in("again", time.Hour)
		ok, err = eng.Cancel(ctx, "again")
		require.NoError(t, err)
		require.True(t, ok)
		in("again", 30*time.Millisecond)
		r.wait(t, 3)
		time.Sleep(time.Until(begun.Add(2200 * time.Millisecond))) // whatever is wrong has time to happen
		require.Equal(t, map[string]int{"sooner": 1, "often": 1, "again": 1}, r.byID())
		require.Equal(t, 1001, eng.Stats().Armed)
	})
}

// Case 112: false, no retry, and its ctx goes on.
func TestCancellingARunningTaskIsFalseAndEndsItsRetries(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		entered, leave := make(chan struct{}), make(chan struct{})
		var calls atomic.Int64
		var cut error
		eng := start(t, rdb, func(ctx context.Context, _ executor.Task) error {
			if calls.Add(1) == 1 {
				close(entered)
				<-leave
				cut = ctx.Err()
			}
			return errors.New("fails")
		}, func(c *orderwheel.Config) { c.Retry.Base = time.Millisecond })
		require.NoError(t, eng.Schedule(t.Context(), "A", time.Now()))
		<-entered
		ok, err := eng.Cancel(t.Context(), "A")
		require.NoError(t, err)
		require.False(t, ok)
		close(leave)
		empty(t, rdb)
		require.EqualValues(t, 1, calls.Load())
		require.NoError(t, cut)
		ok, err = eng.Cancel(t.Context(), "A")
		require.NoError(t, err)
		require.False(t, ok, "done")
	})
}

func TestSchedulingARunningTaskRunsItAgain(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		for name, wait := range map[string]time.Duration{"before it ends": 0, "after it ends": 50 * time.Millisecond} {
			t.Run(name, func(t *testing.T) {
				entered, leave := make(chan struct{}), make(chan struct{})
				var r runs
				eng := start(t, rdb, func(ctx context.Context, task executor.Task) error {
					_ = r.handle(ctx, task)
					if r.count() == 1 {
						close(entered)
						<-leave
					}
					return nil
				})
				require.NoError(t, eng.Schedule(t.Context(), "A", time.Now()))
				<-entered
				at := time.Now().Add(wait)
				require.NoError(t, eng.Schedule(t.Context(), "A", at))
				close(leave)
				r.wait(t, 2)
				require.Equal(t, 1, r.tasks[1].Attempt)
				require.Equal(t, executor.FromWheel, r.tasks[1].Source)
				require.WithinDuration(t, at, r.tasks[1].Due, time.Millisecond)
				stop(t, eng)
				empty(t, rdb)
			})
		}
	})
}

// The promise's fifth line, raced: every id is cancelled around its due time.
// True: it never runs. False: it runs, once.
func TestACancelsAnswerIsFinal(t *testing.T) {
	t.Parallel()
	n := 1000
	if long() {
		n = 10_000
	}
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		var r runs
		eng := start(t, rdb, r.handle)
		var wg sync.WaitGroup
		answers := make([]bool, n)
		for g := range 20 {
			wg.Go(func() {
				for i := g; i < n; i += 20 {
					id := fmt.Sprint(i)
					wait := time.Duration(rand.Int64N(int64(5 * time.Millisecond)))
					if err := eng.Schedule(t.Context(), id, time.Now().Add(wait)); err != nil {
						t.Error(err)
					}
					time.Sleep(time.Duration(rand.Int64N(int64(5 * time.Millisecond))))
					ok, err := eng.Cancel(t.Context(), id)
					if err != nil {
						t.Error(err)
					}
					answers[i] = ok
				}
			})
		}
		wg.Wait()
		empty(t, rdb)
		stop(t, eng)
		ran := r.byID()
		cancelled := 0
		for i, ok := range answers {
			want := 1
			if ok {
				want = 0
				cancelled++
			}
			require.Equal(t, want, ran[fmt.Sprint(i)], "id %d, cancel said %v", i, ok)
		}
		require.NotZero(t, cancelled)
		require.NotEqual(t, n, cancelled)
	})
}

// Cases 28, 122: a handler may call the engine.
func TestAHandlerMayCallTheEngine(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		var eng *orderwheel.Engine
		done := make(chan error, 1)
		ready := make(chan struct{})
		eng = start(t, rdb, func(ctx context.Context, task executor.Task) error {
			<-ready
			if task.ID == "next" {
				ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
				defer cancel()
				done <- eng.Stop(ctx)
				return nil
			}
			_, err := eng.Cancel(ctx, task.ID)
			err = errors.Join(err, eng.Schedule(ctx, "next", time.Now()))
			eng.Stats()
			_, nowErr := eng.Now(ctx)
			return errors.Join(err, nowErr)
		})
		require.NoError(t, eng.Schedule(t.Context(), "A", time.Now()))
		close(ready)
		select {
		case err := <-done:
			require.ErrorIs(t, err, context.DeadlineExceeded, "it waited for itself")
		case <-time.After(hang):
			t.Fatal("deadlock")
		}
	})
}

func TestCallsOnAnEngineThatIsNotRunning(t *testing.T) {
	t.Parallel()
	rdb := redistest.Mini(t)
	eng, err := orderwheel.New(orderwheel.Config{Redis: rdb, Handler: new(runs).handle})
	require.NoError(t, err)
	stop(t, eng) // before Start
	closed := func() {
		t.Helper()
		require.ErrorIs(t, eng.Schedule(t.Context(), "A", time.Now()), orderwheel.ErrClosed)
		_, err = eng.Cancel(t.Context(), "A")
		require.ErrorIs(t, err, orderwheel.ErrClosed)
		require.Zero(t, eng.Stats())
		now, err := eng.Now(t.Context())
		require.NoError(t, err)
		require.WithinDuration(t, time.Now(), now, time.Minute)
	}
	closed()
	require.NoError(t, eng.Start(t.Context()))
	require.ErrorIs(t, eng.Start(t.Context()), orderwheel.ErrStarted)
	stop(t, eng)
	stop(t, eng)
	closed()
}

func TestBadInputIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		eng := start(t, rdb, new(runs).handle)
		now := time.Now()
		for name, c := range map[string]struct {
			id string
			at time.Time
		}{
			"empty id":    {"", now},
			"long id":     {strings.Repeat("x", 257), now},
			"zero time":   {"A", time.Time{}},
			"before 1970": {"A", time.UnixMilli(-1)},
			"after 9999":  {"A", time.UnixMilli(persist.MaxDueMS).Add(time.Millisecond)},
			"far after":   {"A", time.Date(292_000_000, 1, 1, 0, 0, 0, 0, time.UTC)},
		} {
			require.ErrorIs(t, eng.Schedule(t.Context(), c.id, c.at), persist.ErrInvalid, name)
		}
		_, err := eng.Cancel(t.Context(), "")
		require.ErrorIs(t, err, persist.ErrInvalid)
		empty(t, rdb)
		require.NoError(t, eng.Schedule(t.Context(), strings.Repeat("\x00\xff", 128), time.UnixMilli(persist.MaxDueMS)))
	})
}

// Cases 18, 32, 50, 61, 102: what is due while nothing runs fires after the
// next Start, what is due later at its time, each once.
func TestARestartLosesNothingAndRunsNothingTwice(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		var r runs
		eng := start(t, rdb, r.handle)
		begun := time.Now()
		for i := range 50 {
			require.NoError(t, eng.Schedule(t.Context(), fmt.Sprint("soon", i), begun.Add(time.Duration(i*4)*time.Millisecond)))
			require.NoError(t, eng.Schedule(t.Context(), fmt.Sprint("late", i), begun.Add(time.Hour)))
		}
		for range 10 {
			stop(t, eng)
			time.Sleep(10 * time.Millisecond) // some come due meanwhile
			require.NoError(t, eng.Start(t.Context()))
		}
		r.wait(t, 50)
		require.Equal(t, 50, eng.Stats().Armed)
		for id, n := range r.byID() {
			require.Equal(t, 1, n, "id %s", id)
		}
		require.NoError(t, eng.Schedule(t.Context(), "soon0", time.Now()))
		r.wait(t, 51)
	})
}

// Case 122: Start and Stop at once.
func TestStartRacedByStop(t *testing.T) {
	t.Parallel()
	rdb := redistest.Mini(t)
	for range 50 {
		eng, err := orderwheel.New(orderwheel.Config{Redis: rdb, Handler: new(runs).handle})
		require.NoError(t, err)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if err := eng.Start(t.Context()); err != nil && !errors.Is(err, orderwheel.ErrStarted) && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
			wg.Go(func() { stop(t, eng) })
		}
		wg.Wait()
		stop(t, eng)
	}
}

// Case 2: every call returns, and a nil means that it is durable.
func TestStopRacedBySchedule(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		eng := start(t, rdb, new(runs).handle)
		var durable atomic.Int64
		var wg sync.WaitGroup
		for g := range 100 {
			wg.Go(func() {
				for i := 0; ; i++ {
					err := eng.Schedule(context.Background(), fmt.Sprint(g, "-", i), time.Now().Add(time.Hour))
					if errors.Is(err, orderwheel.ErrClosed) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					durable.Add(1)
				}
			})
		}
		require.Eventually(t, func() bool { return durable.Load() > 200 }, hang, time.Millisecond)
		stop(t, eng)
		wg.Wait()
		require.Equal(t, durable.Load(), rdb.ZCard(t.Context(), "{orderwheel:0}:due").Val())
	})
}

// Case 39: five instances share the work; each task runs once.
func TestFiveInstancesRunEachTaskOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	const n = 2000
	var r runs
	engines := make([]*orderwheel.Engine, 5)
	for i := range engines {
		engines[i] = start(t, server.Client(t), r.handle, func(c *orderwheel.Config) { c.SweepEvery = 20 * time.Millisecond; c.Grace = time.Millisecond })
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
		claims, err := store.Claim(t.Context(), "of-a-dead-process", []string{"A"}, 50*time.Millisecond)
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
	var log syncBuffer
	var r runs
	eng := start(t, server.Client(t), r.handle, func(c *orderwheel.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
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

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

type panickingLog struct{ slog.Handler }

func (panickingLog) Enabled(context.Context, slog.Level) bool  { return true }
func (panickingLog) Handle(context.Context, slog.Record) error { panic("logger") }

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

// hangingWheel is a wheel whose Schedule of one id does not return, as
// RussellLuo's may.
type hangingWheel struct {
	wheel.Wheel
	release chan struct{}
}

func (w hangingWheel) Schedule(id string, dueMS int64) {
	if id == "hang" {
		<-w.release
	}
	w.Wheel.Schedule(id, dueMS)
}

func TestAWheelThatHangsHoldsUpNothingButItself(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	var r runs
	eng := start(t, redistest.Mini(t), r.handle, func(c *orderwheel.Config) {
		c.SweepEvery, c.Grace = 5*time.Millisecond, time.Millisecond
		c.Wheel = func(nowMS func() int64) wheel.Wheel { return hangingWheel{russellluo.New(nowMS), release} }
	})
	require.NoError(t, eng.Schedule(t.Context(), "hang", time.Now().Add(time.Hour)))
	for i := range 100 {
		require.NoError(t, eng.Schedule(t.Context(), fmt.Sprint(i), time.Now().Add(time.Duration(i)*time.Millisecond)))
	}
	r.wait(t, 100) // the sweep finds them
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorContains(t, eng.Stop(ctx), "the wheel hangs")
	close(release)
	stop(t, eng)
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

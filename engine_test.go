package orderwheel_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/executor"
	"github.com/orderwheel/orderwheel/internal/redistest"
	"github.com/orderwheel/orderwheel/persist"
)

func TestAConfigsFaultsAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := orderwheel.New(orderwheel.Config{
		Namespace: "no spaces", Workers: -1, Lease: -1, HandlerTimeout: -1, SweepEvery: -1, Grace: -1,
		Retry: orderwheel.Retry{Base: -1, Cap: -2, Jitter: 3}, BatchSize: -1,
	})
	for _, want := range []string{"client", "Namespace", "Handler is nil", "BatchSize is -1: use 1 to 1000", "Workers is -1", "Lease is -1ns", "HandlerTimeout", "Retry.Base", "Retry.Cap", "Retry.Jitter is 3", "SweepEvery", "Grace"} {
		require.ErrorContains(t, err, want)
	}
	_, err = orderwheel.New(orderwheel.Config{Redis: redistest.Mini(t), Handler: new(runs).handle,
		BatchHandler: func(context.Context, []executor.Task) []error { return nil }})
	require.ErrorContains(t, err, "Handler and BatchHandler are both set")
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
		// A claim that is slow because all wait for a processor must not count.
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

func TestABatchHandlerRunsEachTaskOnceAndNothingIsLeft(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		var r runs
		var most atomic.Int64
		eng := start(t, rdb, nil, func(c *orderwheel.Config) {
			c.BatchHandler = func(ctx context.Context, tasks []executor.Task) []error {
				errs := make([]error, len(tasks))
				for i, task := range tasks {
					_ = r.handle(ctx, task)
					if task.ID == "3" && task.Attempt == 1 {
						errs[i] = errors.New("fails")
					}
				}
				most.Store(max(most.Load(), int64(len(tasks))))
				return errs
			}
			c.Workers, c.Retry.Base = 1, time.Millisecond
		})
		at := time.Now().Add(20 * time.Millisecond)
		for i := range 300 {
			require.NoError(t, eng.Schedule(t.Context(), fmt.Sprint(i), at))
		}
		r.wait(t, 301)
		empty(t, rdb)
		for id, n := range r.byID() {
			require.Equal(t, map[bool]int{true: 2, false: 1}[id == "3"], n, "id %s", id)
		}
		require.LessOrEqual(t, most.Load(), int64(100))
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

// Cases 10 and 11: the store's clock decides, whatever the local one says.
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
	// It goes on, past all that the estimate may have shown: a clock that stood still
	// would never get there.
	server.SetTime(behind.Add(time.Minute))
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
			in("far"+fmt.Sprint(i), 50*time.Minute)
		}
		in("sooner", 50*time.Minute)
		in("sooner", 30*time.Millisecond)
		begun := time.Now()
		in("later", 2*time.Second)
		in("later", 50*time.Minute)
		in("moved and cancelled", 2*time.Second)
		in("moved and cancelled", 2*time.Second+50*time.Millisecond)
		ok, err := eng.Cancel(ctx, "moved and cancelled")
		require.NoError(t, err)
		require.True(t, ok)
		for i := range 1000 {
			in("often", time.Duration(1000-i/2)*time.Millisecond)
		}
		in("again", 50*time.Minute)
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

// Cases 119, 123: after its last attempt a task is dead, and stays so when the engine is
// started again, until it is scheduled anew.
func TestADeadTaskStaysDeadWhateverIsRestarted(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		var r runs
		dead := make(chan executor.Dead, 10)
		eng := start(t, rdb, func(ctx context.Context, task executor.Task) error {
			if task.ID == "B" {
				return nil
			}
			if _ = r.handle(ctx, task); r.count() <= 4 {
				return errors.New("no such stock row")
			}
			return nil
		}, func(c *orderwheel.Config) {
			c.Retry = orderwheel.Retry{Base: time.Millisecond, Cap: time.Millisecond, Attempts: 4}
			c.OnDead = func(_ context.Context, d executor.Dead) { dead <- d }
			c.SweepEvery = 5 * time.Millisecond
		})
		require.NoError(t, eng.Schedule(t.Context(), "A", time.Now()))
		select {
		case d := <-dead:
			require.Equal(t, "A", d.ID)
			require.Equal(t, "no such stock row", d.Reason)
			require.Equal(t, 4, d.Attempt)
		case <-time.After(hang):
			t.Fatal("nobody was told")
		}
		for range 3 {
			stop(t, eng)
			require.NoError(t, eng.Start(t.Context()))
			require.NoError(t, eng.Schedule(t.Context(), "B", time.Now())) // whatever is wrong has time to happen
			require.Eventually(t, func() bool { return eng.Stats().Executor.Done == 1 }, hang, time.Millisecond)
		}
		require.Equal(t, 4, r.count())
		require.EqualValues(t, 1, rdb.ZCard(t.Context(), "{orderwheel:0}:dead").Val())
		require.NoError(t, eng.Schedule(t.Context(), "A", time.Now()))
		r.wait(t, 5)
		require.Equal(t, 1, r.tasks[4].Attempt)
		empty(t, rdb)
		require.Empty(t, dead)
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
			require.NoError(t, eng.Schedule(t.Context(), fmt.Sprint("late", i), begun.Add(50*time.Minute)))
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

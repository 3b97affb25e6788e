package orderwheel_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/executor"
	"github.com/orderwheel/orderwheel/internal/redistest"
	"github.com/orderwheel/orderwheel/persist"
)

// ledger is a handler whose effect stands behind a condition, as an order's close does.
type ledger struct {
	runs
	t       *testing.T
	lock    sync.Mutex
	effects map[string]int
	closed  map[string]bool
	alone   map[string]int // runs without a claim
	last    map[string]time.Time
}

func newLedger(t *testing.T) *ledger {
	return &ledger{t: t, effects: map[string]int{}, closed: map[string]bool{}, alone: map[string]int{}, last: map[string]time.Time{}}
}

func (l *ledger) handle(ctx context.Context, t executor.Task) error {
	l.lock.Lock()
	defer l.lock.Unlock()
	if time.Now().Before(t.Due) || t.Now.Before(t.Due) {
		l.t.Errorf("%q is due at %v, and runs at %v", t.ID, t.Due, t.Now)
	}
	l.last[t.ID] = time.Now()
	if t.Unclaimed {
		l.alone[t.ID]++
	}
	if !l.closed[t.ID] {
		l.closed[t.ID] = true
		l.effects[t.ID]++
	}
	return l.runs.handle(ctx, t)
}

func (l *ledger) ran() (closed, alone int) {
	l.lock.Lock()
	defer l.lock.Unlock()
	return len(l.closed), len(l.alone)
}

// scheduleMany makes n ids due at at.
func scheduleMany(t *testing.T, eng *orderwheel.Engine, n int, at time.Time) {
	t.Helper()
	var all sync.WaitGroup
	for from := range 50 {
		all.Go(func() {
			for i := from; i < n; i += 50 {
				if err := eng.Schedule(context.Background(), fmt.Sprint(i), at); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.Less(t, time.Now(), at, "they were not all scheduled in time")
}

// outage is how long Redis is away while tasks fall due.
func outage() time.Duration {
	if long() {
		return 10 * time.Second
	}
	return 2 * time.Second
}

// once checks that each of n had its effect once, and that nothing is left over.
func (l *ledger) once(t *testing.T, eng *orderwheel.Engine, server *redistest.Server, n int) {
	t.Helper()
	empty(t, server.Client(t))
	require.Eventually(t, func() bool { // the last acks are in Redis, their answers on the way
		s := eng.Stats().Executor
		return s.Running+s.Ready+s.Awaiting == 0 && s.Done >= uint64(n)
	}, hang, time.Millisecond)
	l.lock.Lock()
	defer l.lock.Unlock()
	require.Len(t, l.effects, n)
	for id, effects := range l.effects {
		require.Equal(t, 1, effects, id)
	}
	require.EqualValues(t, n, eng.Stats().Executor.Done)
}

func TestHandlersRunWhileRedisIsPausedAndNothingIsLeftOver(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	l := newLedger(t)
	eng := start(t, server.Client(t), l.handle, unclaimed)
	const n = 5000
	at := time.Now().Add(6 * time.Second)
	scheduleMany(t, eng, n, at)
	time.Sleep(time.Until(at.Add(-100 * time.Millisecond)))
	server.Pause()
	time.Sleep(time.Until(at.Add(outage())))
	require.Eventually(t, func() bool { closed, _ := l.ran(); return closed == n }, hang, time.Millisecond)
	_, alone := l.ran()
	require.Equal(t, n, alone, "Redis was away before the first was due")
	require.Equal(t, n, eng.Stats().Executor.Awaiting)
	require.Equal(t, n, l.count(), "one that succeeded is not repeated meanwhile")
	server.Resume()
	l.once(t, eng, server, n)
	require.Equal(t, 2*n, l.count(), "once without a claim, once with")
	require.EqualValues(t, n, eng.Stats().Executor.Unclaimed)
}

func TestWithRequireClaimNoHandlerRunsWhileRedisIsPaused(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	l := newLedger(t)
	eng := start(t, server.Client(t), l.handle)
	const n = 5000
	at := time.Now().Add(6 * time.Second)
	scheduleMany(t, eng, n, at)
	time.Sleep(time.Until(at.Add(-100 * time.Millisecond)))
	server.Pause()
	time.Sleep(time.Until(at.Add(outage())))
	require.Zero(t, l.count())
	server.Resume()
	l.once(t, eng, server, n)
	require.Equal(t, n, l.count())
}

func TestHandlersRunWhileRedisIsDeadAndNothingIsLeftOver(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	l := newLedger(t)
	eng := start(t, server.Client(t), l.handle, unclaimed)
	const n = 1000
	at := time.Now().Add(6 * time.Second)
	scheduleMany(t, eng, n, at)
	server.Kill()
	time.Sleep(time.Until(at))
	require.Eventually(t, func() bool { closed, _ := l.ran(); return closed == n }, hang, time.Millisecond)
	server.Boot()
	l.once(t, eng, server, n)
}

// A cancel is on its way when the task falls due, and is answered when Redis is back.
func TestWhatTheUserHasCancelledDoesNotRunInAnOutage(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	l := newLedger(t)
	eng := start(t, server.Client(t), l.handle, unclaimed)
	at := time.Now().Add(2 * time.Second)
	for _, id := range []string{"cancelled", "unknown", "moved", "runs"} {
		require.NoError(t, eng.Schedule(t.Context(), id, at))
	}
	server.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := eng.Cancel(ctx, "unknown")
	require.ErrorIs(t, err, persist.ErrUnknownOutcome)
	var calls sync.WaitGroup
	var cancelled bool
	calls.Go(func() {
		var err error
		if cancelled, err = eng.Cancel(context.Background(), "cancelled"); err != nil {
			t.Error(err)
		}
	})
	again := at.Add(4 * time.Second)
	calls.Go(func() {
		if err := eng.Schedule(context.Background(), "moved", again); err != nil {
			t.Error(err)
		}
	})
	require.Eventually(t, func() bool { _, alone := l.ran(); return alone == 1 }, hang, time.Millisecond)
	time.Sleep(500 * time.Millisecond)
	require.Equal(t, map[string]int{"runs": 1}, l.byID())
	server.Resume()
	calls.Wait()
	empty(t, server.Client(t))
	// Redis may take up the claim before the calls: then what it has claimed runs.
	l.lock.Lock()
	defer l.lock.Unlock()
	require.Equal(t, map[string]int{"runs": 1}, l.alone)
	require.Equal(t, 2, l.byID()["runs"])
	require.Equal(t, cancelled, l.byID()["cancelled"] == 0)
	require.False(t, l.last["moved"].Before(again))
}

func TestACancelOfWhatHasRunInAnOutageSaysThatItHasStarted(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	l := newLedger(t)
	eng := start(t, server.Client(t), l.handle, unclaimed)
	at := time.Now().Add(500 * time.Millisecond)
	require.NoError(t, eng.Schedule(t.Context(), "A", at))
	server.Pause()
	require.Eventually(t, func() bool { _, alone := l.ran(); return alone == 1 }, hang, time.Millisecond)
	answer := make(chan bool)
	go func() {
		ok, _ := eng.Cancel(context.Background(), "A")
		answer <- ok
	}()
	time.Sleep(50 * time.Millisecond)
	server.Resume()
	require.False(t, <-answer)
	empty(t, server.Client(t))
}

func TestStopEndsInTimeWhileRedisIsPaused(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	l := newLedger(t)
	eng, err := orderwheel.New(orderwheel.Config{Redis: server.Client(t), Handler: l.handle})
	require.NoError(t, err)
	require.NoError(t, eng.Start(t.Context()))
	const n = 500
	at := time.Now().Add(2 * time.Second)
	scheduleMany(t, eng, n, at)
	server.Pause()
	require.Eventually(t, func() bool { closed, _ := l.ran(); return closed == n }, hang, time.Millisecond)
	begun := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_ = eng.Stop(ctx)
	require.Less(t, time.Since(begun), hang)
	server.Resume()
	stop(t, eng)
	// All of it stands in Redis, and the next engine runs it; but for those of the claim
	// that Redis had in hand, which come when their lease is over.
	next := start(t, server.Client(t), l.handle, unclaimed)
	require.Eventually(t, func() bool { return next.Stats().Executor.Done >= n-64 }, hang, time.Millisecond)
	store, err := persist.New(server.Client(t), persist.Options{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		d, err := store.Depth(t.Context())
		return err == nil && int(d.Due+d.Running)+int(next.Stats().Executor.Done) == n
	}, hang, time.Millisecond)
}

package orderwheel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/executor"
	"github.com/orderwheel/orderwheel/internal/redistest"
	"github.com/orderwheel/orderwheel/persist"
)

func TestManyAreScheduledAtOnceAndEachRunsOnce(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	var r runs
	eng := start(t, rdb, r.handle)
	now, err := eng.Now(t.Context())
	require.NoError(t, err)
	var dues []orderwheel.Due
	for i := range 2500 {
		dues = append(dues, orderwheel.Due{ID: fmt.Sprint("order-", i), At: now.Add(50 * time.Millisecond)})
	}
	dues = append(dues, orderwheel.Due{ID: "twice", At: now.Add(time.Hour)}, orderwheel.Due{ID: "twice", At: now.Add(50 * time.Millisecond)})
	require.NoError(t, eng.ScheduleMany(t.Context(), dues))
	r.wait(t, 2501)
	empty(t, rdb)
	for id, n := range r.byID() {
		require.Equal(t, 1, n, id)
	}
}

func TestManyWithABadOneAreRefusedAndNothingIsWritten(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	var r runs
	eng := start(t, rdb, r.handle)
	at := time.Now().Add(time.Hour)
	for name, bad := range map[string]orderwheel.Due{
		"no id": {At: at}, "a long id": {ID: strings.Repeat("x", 257), At: at}, "no time": {ID: "y"},
	} {
		err := eng.ScheduleMany(t.Context(), []orderwheel.Due{{ID: "good", At: at}, bad})
		require.ErrorIs(t, err, persist.ErrInvalid, name)
		d, err := eng.Depth(t.Context())
		require.NoError(t, err)
		require.Zero(t, d, name)
	}
	stop(t, eng)
	require.ErrorIs(t, eng.ScheduleMany(t.Context(), []orderwheel.Due{{ID: "x", At: at}}), orderwheel.ErrClosed)
}

// Two calls on the same many ids, in opposite orders, wait for each other and end.
func TestManyAndManyInTheOtherOrderDoNotLockEachOtherOut(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	var r runs
	eng := start(t, rdb, r.handle)
	at := time.Now().Add(time.Hour)
	done := make(chan error, 8)
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	defer cancel()
	for c := range cap(done) {
		go func() {
			var err error
			for range 20 {
				dues := make([]orderwheel.Due, 100)
				for i := range dues {
					k := i
					if c%2 == 1 {
						k = len(dues) - 1 - i
					}
					dues[i] = orderwheel.Due{ID: fmt.Sprint(k), At: at}
				}
				err = errors.Join(err, eng.ScheduleMany(ctx, dues))
			}
			done <- err
		}()
	}
	for range cap(done) {
		require.NoError(t, <-done)
	}
	d, err := eng.Depth(t.Context())
	require.NoError(t, err)
	require.Equal(t, persist.Depth{Due: 100}, d)
}

func TestAnOperatorSeesTheDeadAndBringsThemBackOrForgetsThem(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	well := make(chan string, 1)
	var broken atomic.Bool
	broken.Store(true)
	eng := start(t, rdb, func(_ context.Context, task executor.Task) error {
		if broken.Load() {
			return executor.Permanent(errors.New("no such table"))
		}
		well <- task.ID
		return nil
	})
	ctx := t.Context()
	require.NoError(t, eng.ScheduleMany(ctx, []orderwheel.Due{{ID: "a", At: time.Now()}, {ID: "b", At: time.Now()}}))
	require.Eventually(t, func() bool {
		d, err := eng.Depth(ctx)
		return err == nil && d.Dead == 2
	}, hang, time.Millisecond)

	page, err := eng.Dead(ctx, persist.Cursor{}, 10)
	require.NoError(t, err)
	require.Len(t, page.Dead, 2)
	require.Contains(t, page.Dead[0].Reason, "no such table")
	record, err := eng.Lookup(ctx, "a")
	require.NoError(t, err)
	require.Equal(t, persist.StatusDead, record.Status)

	forgotten, err := eng.Discard(ctx, "b")
	require.NoError(t, err)
	require.True(t, forgotten)
	forgotten, err = eng.Discard(ctx, "b")
	require.NoError(t, err)
	require.False(t, forgotten)

	broken.Store(false)
	back, err := eng.Requeue(ctx, "b")
	require.NoError(t, err)
	require.False(t, back, "it is forgotten")
	back, err = eng.Requeue(ctx, "a")
	require.NoError(t, err)
	require.True(t, back)
	require.Equal(t, "a", <-well)
	empty(t, rdb)
}

func TestARequeuedTaskRunsAlthoughTheEngineWasNotRunning(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	ran := make(chan struct{}, 16)
	eng := start(t, rdb, func(context.Context, executor.Task) error {
		ran <- struct{}{}
		if len(ran) == 1 {
			return executor.Permanent(errors.New("broken"))
		}
		return nil
	})
	require.NoError(t, eng.Schedule(t.Context(), "a", time.Now()))
	require.Eventually(t, func() bool {
		d, err := eng.Depth(t.Context())
		return err == nil && d.Dead == 1
	}, hang, time.Millisecond)
	stop(t, eng)
	back, err := eng.Requeue(t.Context(), "a")
	require.NoError(t, err)
	require.True(t, back)
	require.NoError(t, eng.Start(t.Context()))
	empty(t, rdb)
	require.Len(t, ran, 2)
}

func TestHealthSaysInWordsWhatIsWrong(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	var r runs
	eng := start(t, server.Client(t), r.handle)
	h := eng.Health()
	require.True(t, h.OK, "%v", h.Problems)
	require.Contains(t, fmt.Sprint(h.Warnings), "appendonly", "this server keeps no append-only file")

	server.Kill()
	require.Eventually(t, func() bool {
		h := eng.Health()
		return !h.OK && strings.Contains(fmt.Sprint(h.Problems), "Redis does not serve")
	}, hang, time.Millisecond)

	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	require.NoError(t, eng.Stop(ctx))
	require.Contains(t, fmt.Sprint(eng.Health().Problems), "the engine is not running")
}

package orderwheel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/executor"
	"github.com/orderwheel/orderwheel/internal/redistest"
	"github.com/orderwheel/orderwheel/persist"
)

// dues makes n tasks due at the same instant.
func dues(n int, at time.Time) []orderwheel.Due {
	list := make([]orderwheel.Due, n)
	for i := range list {
		list[i] = orderwheel.Due{ID: fmt.Sprint(i), At: at}
	}
	return list
}

func idsOf(list []orderwheel.Due) []string {
	ids := make([]string, len(list))
	for i, d := range list {
		ids[i] = d.ID
	}
	return ids
}

// Cases 4, 66: many, and all in one millisecond.
func TestManyTasksAreScheduledAndEachRunsOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		const n = 2*persist.MaxBatch + 1
		var r runs
		eng := start(t, rdb, r.handle)
		require.NoError(t, eng.ScheduleMany(t.Context(), dues(n, time.Now().Add(50*time.Millisecond))))
		r.wait(t, n)
		empty(t, rdb)
		require.Len(t, r.byID(), n)
		require.Equal(t, n, r.count())
		for _, task := range r.tasks {
			require.Equal(t, executor.FromWheel, task.Source)
		}
	})
}

func TestAnIDThatStandsTwiceInABatchIsScheduledInThatOrder(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		var r runs
		eng := start(t, rdb, r.handle)
		list := dues(persist.MaxBatch+1, time.Now().Add(30*time.Minute))
		soon := time.Now().Add(time.Millisecond)
		list[3].At, list[persist.MaxBatch].ID, list[persist.MaxBatch].At = soon, "5", soon // in another chunk
		list[4].At = soon
		list[7] = orderwheel.Due{ID: "4", At: time.Now().Add(30 * time.Minute)} // in the same
		require.NoError(t, eng.ScheduleMany(t.Context(), list))
		r.wait(t, 2)
		time.Sleep(50 * time.Millisecond) // whatever is wrong has time to happen
		require.Equal(t, map[string]int{"3": 1, "5": 1}, r.byID())
		require.Equal(t, persist.MaxBatch-3, eng.Stats().Armed)
	})
}

func TestManyTasksAreCancelledAndTheAnswersStandInTheirPlaces(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		const n = persist.MaxBatch + 100
		eng := start(t, rdb, new(runs).handle)
		list := dues(n, time.Now().Add(30*time.Minute))
		require.NoError(t, eng.ScheduleMany(t.Context(), list))
		ids := append(idsOf(list), "never", "7")
		cancelled, err := eng.CancelMany(t.Context(), ids)
		require.NoError(t, err)
		require.Len(t, cancelled, len(ids))
		for i, ok := range cancelled {
			require.Equal(t, i < n, ok, "place %d", i)
		}
		empty(t, rdb)
		require.Eventually(t, func() bool { return eng.Stats().Armed == 0 }, hang, time.Millisecond)
	})
}

func TestAllFaultsOfABatchAreReportedAndNothingIsWritten(t *testing.T) {
	t.Parallel()
	rdb := redistest.Mini(t)
	eng := start(t, rdb, new(runs).handle)
	list := dues(20, time.Now().Add(30*time.Minute))
	list[3].ID, list[5].At, list[7].ID = "", time.Time{}, strings.Repeat("x", 257)
	err := eng.ScheduleMany(t.Context(), list)
	require.ErrorIs(t, err, persist.ErrInvalid)
	for _, want := range []string{"task 3", "task 5", "task 7"} {
		require.ErrorContains(t, err, want)
	}
	require.NotContains(t, err.Error(), "task 4")
	empty(t, rdb)
	require.Len(t, persist.Missing(err, len(list)), len(list))

	_, err = eng.CancelMany(t.Context(), []string{"a", ""})
	require.ErrorIs(t, err, persist.ErrInvalid)
	require.ErrorContains(t, err, "task 1")

	err = eng.ScheduleMany(t.Context(), make([]orderwheel.Due, 100_000))
	require.ErrorIs(t, err, persist.ErrInvalid)
	require.Less(t, len(err.Error()), 10_000, "the message is bounded")
}

func TestAnEmptyBatchAsksNothing(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	eng := start(t, server.Client(t), new(runs).handle)
	server.Kill()
	require.NoError(t, eng.ScheduleMany(t.Context(), nil))
	cancelled, err := eng.CancelMany(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, cancelled)
}

func TestABatchIsRefusedWhileTheEngineIsNotRunning(t *testing.T) {
	t.Parallel()
	eng, err := orderwheel.New(orderwheel.Config{Redis: redistest.Mini(t), Handler: new(runs).handle})
	require.NoError(t, err)
	require.ErrorIs(t, eng.ScheduleMany(t.Context(), dues(1, time.Now())), orderwheel.ErrClosed)
	_, err = eng.CancelMany(t.Context(), []string{"A"})
	require.ErrorIs(t, err, orderwheel.ErrClosed)
}

// On a Cluster a shard that is away holds up none of the others, and its places are
// told. What was not written can be scheduled again.
func TestABatchOfWhichAShardIsAwayIsWrittenInPart(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	rdb := cluster.Client(t)
	eng := start(t, rdb, new(runs).handle)
	const n = 20_000
	list := dues(n, time.Now().Add(30*time.Minute))
	node := cluster.NodeOf("{orderwheel:0}:due")
	node.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	err := eng.ScheduleMany(ctx, list)
	node.Resume()
	require.ErrorIs(t, err, context.DeadlineExceeded)
	missing := persist.Missing(err, n)
	require.NotEmpty(t, missing)
	require.Less(t, len(missing), n/2)
	again := make([]orderwheel.Due, len(missing))
	for k, i := range missing {
		again[k] = list[i]
	}
	require.NoError(t, eng.ScheduleMany(t.Context(), again))
	depth, err := eng.Depth(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, n, depth.Due)
	require.Eventually(t, func() bool { return eng.Stats().Armed == n }, hang, time.Millisecond)
	cancelled, err := eng.CancelMany(t.Context(), idsOf(list))
	require.NoError(t, err)
	require.NotContains(t, cancelled, false)
}

// Batches that overlap in any order, beside calls on one id: none waits for ever, and the
// wheel hears of each id last what the store did.
func TestOverlappingBatchesDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		eng := start(t, rdb, new(runs).handle)
		ids := idsOf(dues(100, time.Time{}))
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for range 20 {
					batch := make([]orderwheel.Due, len(ids))
					for i := range batch {
						// Forwards, backwards, and from the middle.
						k := (i*(1-2*(g%2)) + g*13 + len(ids)) % len(ids)
						batch[i] = orderwheel.Due{ID: ids[(k+len(ids))%len(ids)], At: time.Now().Add(30 * time.Minute)}
					}
					err := eng.ScheduleMany(t.Context(), batch)
					_, err2 := eng.Cancel(t.Context(), ids[g])
					_, err3 := eng.CancelMany(t.Context(), ids[g*10:])
					if err := errors.Join(err, err2, err3); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		_, err := eng.CancelMany(t.Context(), ids)
		require.NoError(t, err)
		empty(t, rdb)
		require.Eventually(t, func() bool { return eng.Stats().Armed == 0 }, hang, time.Millisecond)
	})
}

// A batch whose ids others hold waits for them no longer than its ctx.
func TestABatchWaitsForOtherCallsNoLongerThanItsCtx(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	eng := start(t, server.Client(t), new(runs).handle)
	server.Pause()
	first, endFirst := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- eng.Schedule(first, "7", time.Now().Add(30*time.Minute)) }()
	time.Sleep(20 * time.Millisecond) // it has the turn of 7
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := eng.ScheduleMany(ctx, dues(10, time.Now().Add(30*time.Minute)))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Len(t, persist.Missing(err, 10), 10)
	server.Resume()
	endFirst()
	<-done
	require.NoError(t, eng.ScheduleMany(t.Context(), dues(10, time.Now().Add(30*time.Minute))))
}

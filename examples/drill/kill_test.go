package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/examples/internal/built"
	"github.com/orderwheel/orderwheel/internal/redistest"
)

func TestMain(m *testing.M) { os.Exit(built.Run(m)) }

func TestAKillDuringTenThousandPendingTasksDoesNoHarm(t *testing.T) {
	t.Parallel()
	r := setup(t, options{orders: 10000, processes: 1})
	ctx, client := t.Context(), r.place.redis

	// The first worker creates all orders, and no call of its handler returns.
	hold := r.job
	hold.Hold = true
	first, err := spawn(r.program, hold)
	require.NoError(t, err)
	_, err = first.await(ctx, tellHolding, func(string, string) {})
	require.NoError(t, err)

	running := client.ZCard(ctx, "{"+namespace+":0}:running").Val()
	due := client.ZCard(ctx, "{"+namespace+":0}:due").Val()
	require.GreaterOrEqual(t, running, int64(holdAtLeast))
	require.EqualValues(t, r.job.Orders, due+running)
	require.NoError(t, first.kill())

	tally, err := r.place.tally(ctx)
	require.NoError(t, err)
	require.EqualValues(t, r.job.Orders, tally.created)
	require.Less(t, tally.open, tally.created, "some orders were closed, and their tasks not yet acknowledged")
	require.GreaterOrEqual(t, tally.open, tally.created-running)

	// The second one finishes.
	r.job.Idle = true
	require.NoError(t, r.run(ctx, nil))
	f, err := r.judge(ctx)
	require.NoError(t, err)
	require.True(t, f.sound(), "%+v", f)
	require.EqualValues(t, r.job.Orders, f.Closed)

	// What had run when the kill came has run again, although half of it was done.
	var cutOff, again int
	require.NoError(t, r.place.store.DB().QueryRowContext(ctx, `
		SELECT count(DISTINCT a.order_no), count(DISTINCT b.order_no)
		FROM audit_calls AS a LEFT JOIN audit_calls AS b ON b.order_no = a.order_no AND b.commit_us IS NOT NULL AND b.error IS NULL
		WHERE a.commit_us IS NULL`).Scan(&cutOff, &again))
	require.GreaterOrEqual(t, cutOff, holdAtLeast)
	require.Equal(t, cutOff, again)
}

// setup prepares a round of the built program. The test is skipped, or fails,
// where there is no redis-server.
func setup(t *testing.T, o options) *round {
	t.Helper()
	redistest.Start(t).Kill()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // a hang
	defer cancel()
	r, err := newRound(ctx, o, 1, io.Discard)
	t.Cleanup(func() { require.NoError(t, r.close()) })
	require.NoError(t, err)
	r.program = built.Program(t)
	r.job.Start = time.Now()
	return r
}

func TestEachNamedStepIsPassedAndAKillThereDoesNoHarm(t *testing.T) {
	t.Parallel()
	r := setup(t, options{orders: 2000, processes: 2})
	r.job.Spread = 20 * time.Second
	var plan []event
	for i, s := range namedSteps {
		plan = append(plan, event{At: 0.15 + 0.09*float64(i), Do: killWorker, Slot: i % 2, Step: s})
	}
	require.NoError(t, r.run(t.Context(), plan))
	for _, s := range namedSteps {
		require.EqualValues(t, 1, r.mu.kills[s], s)
	}
	f, err := r.judge(t.Context())
	require.NoError(t, err)
	require.True(t, f.sound(), "%+v", f)
	require.NotZero(t, f.RecoveryMS.P50)
}

func TestAWorkerThatStandsStillPastItsLeaseDoesNoHarm(t *testing.T) {
	t.Parallel()
	r := setup(t, options{orders: 1000, processes: 2})
	r.job.Spread = 5 * time.Second
	plan := []event{
		{At: 0.4, Do: pauseWorker, Slot: 0, For: lease + time.Second},
		{At: 0.9, Do: pauseWorker, Slot: 1, For: lease + time.Second},
	}
	require.NoError(t, r.run(t.Context(), plan))
	f, err := r.judge(t.Context())
	require.NoError(t, err)
	require.True(t, f.sound(), "%+v", f)
}

func TestAWorkerThatFailsIsAnError(t *testing.T) {
	t.Parallel()
	r := setup(t, options{orders: 10, processes: 2})
	dir := r.job.Dir
	r.job.Dir = filepath.Join(dir, "no such folder")
	err := r.run(t.Context(), []event{{Do: pauseWorker, For: time.Minute}})
	r.job.Dir = dir
	require.ErrorContains(t, err, "a worker failed: exit status 1\n")
}

// Such a worker would end before it is killed.
func TestAStopThatHasNothingToAskOfRedisIsKilledToo(t *testing.T) {
	t.Parallel()
	r := setup(t, options{orders: 1, processes: 1})
	r.job.Idle = true
	p, err := spawn(r.program, r.job)
	require.NoError(t, err)
	heard := func(string, string) {}
	_, err = p.await(t.Context(), tellStarted, heard)
	require.NoError(t, err)
	r.redis.stop()
	p.tell(tellWait, inStop)
	p.tell(tellStop)
	at, err := p.await(t.Context(), tellAt, heard)
	require.NoError(t, err)
	require.EqualValues(t, inStop, at)
	require.NoError(t, p.kill())
}

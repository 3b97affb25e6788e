package main

import (
	"bufio"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/examples/internal/built"
	"github.com/orderwheel/orderwheel/internal/redistest"
)

func TestMain(m *testing.M) { os.Exit(built.Run(m)) }

func TestAKillDuringTenThousandPendingTasksDoesNoHarm(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // a hang
	defer cancel()
	program := built.Program(t)
	server := redistest.Start(t, "--appendonly", "yes")
	client := server.Client(t)
	j := job{Dir: t.TempDir(), Redis: server.Addr(), Orders: 10000, Start: time.Now()}
	require.NoError(t, prepare(ctx, j))

	// The first worker creates all orders, and no call of its handler returns.
	first := j
	first.Hold = true
	cmd, stderr, err := workerCommand(ctx, program, first)
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err, stderr)
	require.True(t, strings.HasPrefix(line, "holding "), line)

	running := client.ZCard(ctx, "{"+namespace+":0}:running").Val()
	due := client.ZCard(ctx, "{"+namespace+":0}:due").Val()
	require.GreaterOrEqual(t, running, int64(holdAtLeast))
	require.EqualValues(t, j.Orders, due+running)
	require.NoError(t, cmd.Process.Kill())
	require.ErrorContains(t, cmd.Wait(), "signal: killed")

	p, err := open(ctx, j)
	require.NoError(t, err)
	defer func() { require.NoError(t, p.close()) }()
	openOrders, err := p.countOpen(ctx)
	require.NoError(t, err)
	require.Less(t, openOrders, j.Orders, "some orders were closed, and their tasks not yet acknowledged")
	require.GreaterOrEqual(t, openOrders, j.Orders-int(running))

	// The second one finishes.
	finished, err := runWorker(ctx, program, j, finishWithin)
	require.NoError(t, err)
	require.True(t, finished)

	r, err := judge(ctx, j)
	require.NoError(t, err)
	require.Empty(t, r.Faults())
	require.EqualValues(t, j.Orders, r.Closed)

	// What had run when the kill came has run again, although half of it was done.
	var cutOff, again int
	require.NoError(t, p.store.DB().QueryRowContext(ctx, `
		SELECT count(DISTINCT a.order_no), count(DISTINCT b.order_no)
		FROM audit_calls AS a LEFT JOIN audit_calls AS b ON b.order_no = a.order_no AND b.commit_us IS NOT NULL AND b.error IS NULL
		WHERE a.commit_us IS NULL`).Scan(&cutOff, &again))
	require.GreaterOrEqual(t, cutOff, holdAtLeast)
	require.Equal(t, cutOff, again)
}

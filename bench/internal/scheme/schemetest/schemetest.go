// Package schemetest tests that a scheme does its job when nothing fails.
package schemetest

import (
	"bufio"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/bench/internal/scheme"
	"github.com/orderwheel/orderwheel/internal/dbtest"
	"github.com/orderwheel/orderwheel/internal/redistest"
)

// Setup is what a scheme needs beside the order database and a Redis.
type Setup struct {
	Every time.Duration // its period
	AMQP  string
	// Early is how long before its time it may call the handler, because its times are
	// that coarse.
	Early time.Duration
}

const (
	orders = 40
	rate   = 80
	lead   = 2 * time.Second
	hang   = 60 * time.Second
)

// ClosesWhatIsNotPaid runs a scheme on a few orders: all that are not paid must be closed,
// once, and not early; those that are paid must not.
func ClosesWhatIsNotPaid(t *testing.T, name string, factory scheme.Factory, setup Setup) {
	t.Helper()
	ctx := t.Context()
	j := scheme.Job{
		Scheme: name, Run: filepath.Base(t.TempDir()) + t.Name(), Every: setup.Every, Scale: 100, Instances: 1, Workers: 4,
		DSN: dbtest.MariaDB(t).DSN(), Redis: redistest.Start(t).Addr(), AMQP: setup.AMQP, Calls: filepath.Join(t.TempDir(), "calls"),
		Plan: scheme.Plan{Orders: orders, Rate: rate, FirstMS: time.Now().Add(lead).UnixMilli()},
	}
	db, err := scheme.OpenDB(j.DSN)
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, scheme.Create(ctx, db, j.Plan))
	require.NoError(t, scheme.Pay(ctx, db, j.Plan))

	in, tell := io.Pipe()
	told, out := io.Pipe()
	ended := startJob(t, j, factory, in, out)
	lines := bufio.NewScanner(told)
	await(t, lines, scheme.TellStarted)
	say(t, tell, scheme.TellPlace)
	await(t, lines, scheme.TellPlaced)
	require.Eventually(t, func() bool {
		open, err := scheme.Open(ctx, db)
		return err == nil && open == 0
	}, hang, 20*time.Millisecond)
	say(t, tell, scheme.TellStop)
	require.NoError(t, <-ended)

	judge(t, j, setup)
	double, err := scheme.DoubleEffects(ctx, db)
	require.NoError(t, err)
	require.Zero(t, double)
	missing, err := scheme.MissingEffects(ctx, db)
	require.NoError(t, err)
	require.Zero(t, missing)
	var paid int
	require.NoError(t, db.QueryRowContext(ctx, "SELECT COUNT(*) FROM orders WHERE status = 1").Scan(&paid))
	require.Equal(t, orders-j.Plan.Unpaid(), paid)
}

func startJob(t *testing.T, j scheme.Job, factory scheme.Factory, in io.Reader, out io.WriteCloser) <-chan error {
	ended := make(chan error, 1)
	go func() {
		err := scheme.Run(t.Context(), j, factory, in, out)
		_ = out.Close()
		ended <- err
	}()
	return ended
}

func await(t *testing.T, lines *bufio.Scanner, want string) {
	t.Helper()
	require.True(t, lines.Scan(), "it ended before it said %q", want)
	require.Equal(t, want, lines.Text())
}

func say(t *testing.T, to io.Writer, what string) {
	t.Helper()
	_, err := io.WriteString(to, what+"\n")
	require.NoError(t, err)
}

// judge looks at the calls of the handler.
func judge(t *testing.T, j scheme.Job, setup Setup) {
	t.Helper()
	calls, err := scheme.ReadCalls(j.Calls)
	require.NoError(t, err)
	closed := 0
	for _, c := range calls {
		require.False(t, c.Entry.Before(j.Plan.Order(c.Order).ExpireAt.Add(-setup.Early)), "order %d is called early", c.Order)
		if c.Result == scheme.Closed {
			require.False(t, j.Plan.Paid(c.Order))
			closed++
		}
	}
	require.Equal(t, j.Plan.Unpaid(), closed)
}

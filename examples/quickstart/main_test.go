package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/examples/internal/audit"
	"github.com/orderwheel/orderwheel/examples/internal/built"
	"github.com/orderwheel/orderwheel/internal/redistest"
)

// The tests of this file run the built program, as its users do.

func TestMain(m *testing.M) { os.Exit(built.Run(m)) }

// quickstart prepares a run of the program with a folder of its own for
// temporary files, which must be empty in the end.
func quickstart(t *testing.T, args ...string) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // a hang
	t.Cleanup(cancel)
	temp := t.TempDir()
	t.Cleanup(func() {
		left, err := os.ReadDir(temp)
		require.NoError(t, err)
		require.Empty(t, left, "temporary files are left")
	})
	cmd = exec.CommandContext(ctx, built.Program(t), args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	return cmd, stdout, stderr
}

// runQuickstart runs the program to its end.
func runQuickstart(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	cmd, out, errs := quickstart(t, args...)
	if err := cmd.Run(); err != nil {
		require.IsType(t, &exec.ExitError{}, err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// parseReport reads what -json prints: one object with just the keys of the
// report, on one line.
func parseReport(t *testing.T, stdout string) (r audit.Report) {
	t.Helper()
	require.Equal(t, 1, strings.Count(stdout, "\n"), stdout)
	in := json.NewDecoder(strings.NewReader(stdout))
	in.DisallowUnknownFields()
	require.NoError(t, in.Decode(&r))
	_, err := in.Token()
	require.ErrorIs(t, err, io.EOF)
	return r
}

// quick are flags of a run that takes about a second.
var quick = []string{"-speed", "3600", "-spread", "500ms"}

func TestARunOfMadeUpOrdersIsSound(t *testing.T) {
	t.Parallel()
	status, stdout, stderr := runQuickstart(t, append(quick, "-json")...)
	require.Zero(t, status, stderr)
	r := parseReport(t, stdout)
	require.EqualValues(t, madeUpOrders, r.Orders)
	require.Equal(t, r.Orders, r.Paid+r.Closed)
	require.Empty(t, r.Faults())
	require.Positive(t, r.Closed) // nearly half are never paid; whether any is paid in time depends on the machine
	require.LessOrEqual(t, r.Closed, r.By.Wheel+r.By.Sweep+r.By.Recovery)
	require.Contains(t, stderr, "1,000 made-up orders (seed 1) over 500ms; each has 500ms to pay (30m0s at speed 3600)\n")
}

func TestATableIsPrintedWithoutJSON(t *testing.T) {
	t.Parallel()
	status, stdout, stderr := runQuickstart(t, quick...)
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "orders                  1,000\n")
	require.Contains(t, stdout, "  duplicate_effects         0 ")
	require.NotContains(t, stdout, "WRONG")
}

func TestTheDatabaseIsKeptWhereAsked(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "folder")
	status, _, stderr := runQuickstart(t, append(quick, "-db", dir)...)
	require.Zero(t, status, stderr)
	require.FileExists(t, filepath.Join(dir, "orders.db"))

	status, _, stderr = runQuickstart(t, "-db", dir)
	require.Equal(t, exitFailed, status)
	require.Equal(t, "quickstart: "+filepath.Join(dir, "orders.db")+" exists, or cannot be looked at: use another folder\n", stderr)
}

func TestBadInputIsToldInOneLineEach(t *testing.T) {
	t.Parallel()
	const head = "order_no,created_at,paid_at\n"
	dir := t.TempDir()
	for name, c := range map[string]struct{ text, want string }{
		"empty.csv":  {"", ":1:1: found an empty file, expected the header order_no,created_at,paid_at"},
		"header.csv": {"id,created_at,paid_at\n", `:1:1: found "id,created_at,paid_at", expected the header order_no,created_at,paid_at`},
		"rows.csv": {head + "a,2024-01-01T00:00:00Z\n" +
			"b,01.01.2024,\n" +
			"c,2024-01-01T00:00:01Z,2024-01-01T00:00:00Z\n" +
			",2024-01-01T00:00:00Z,\n" +
			"b,2024-01-01T00:00:00Z,\n", `:2:3: found 2 fields, expected 3: order_no,created_at,paid_at
:3:3: found created_at "01.01.2024", expected an RFC 3339 time like 2017-10-02T10:56:33Z
:4:24: found paid_at 2024-01-01T00:00:00Z, expected created_at, 2024-01-01T00:00:01Z, or later
:5:1: found an empty order_no, expected 1 to 256 bytes
:6:1: found order_no "b" again, first on line 3, expected each order once`},
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
		status, stdout, stderr := runQuickstart(t, "-orders", path)
		require.Equal(t, exitUsage, status, name)
		require.Empty(t, stdout, name)
		require.Equal(t, path+strings.ReplaceAll(c.want, "\n", "\n"+path)+"\n", stderr, name)
	}
	for want, args := range map[string][]string{
		"quickstart: open no such.csv: no such file or directory\n":           {"-orders", "no such.csv"},
		"quickstart: -speed is 0, expected a number greater than 0\n":         {"-speed", "0"},
		"quickstart: flag provided but not defined: -what\n":                  {"-what"},
		"quickstart: -redis is \"x\", expected host:port or a redis:// URL\n": {"-redis", "x"},
	} {
		status, stdout, stderr := runQuickstart(t, args...)
		require.Equal(t, exitUsage, status, want)
		require.Empty(t, stdout, want)
		require.Equal(t, want, stderr)
	}
}

func TestHelpIsNoError(t *testing.T) {
	t.Parallel()
	status, stdout, stderr := runQuickstart(t, "-h")
	require.Zero(t, status)
	require.Equal(t, usage, stdout)
	require.Empty(t, stderr)
}

func TestARedisThatIsNotThereIsToldAtOnce(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and says nothing
	require.NoError(t, err)
	defer silent.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	for _, addr := range []string{silent.Addr().String(), closed.Addr().String()} {
		status, stdout, stderr := runQuickstart(t, "-redis", addr)
		require.Equal(t, exitFailed, status)
		require.Empty(t, stdout)
		require.Regexp(t, `^quickstart: no Redis answers at `+addr+`: .+\n$`, stderr)
	}
}

func TestARunOnARealRedisLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	status, stdout, stderr := runQuickstart(t, append(quick, "-redis", server.Addr(), "-json")...)
	require.Zero(t, status, stderr)
	r := parseReport(t, stdout)
	require.Empty(t, r.Faults())
	require.EqualValues(t, madeUpOrders, r.Paid+r.Closed)
	requireNoKeys(t, server.Client(t))
}

func requireNoKeys(t *testing.T, client *redis.Client) {
	t.Helper()
	keys, err := client.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	require.Empty(t, keys)
}

func TestCtrlCStopsWithASummarySoFar(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		cmd, stdout, _ := quickstart(t, "-redis", server.Addr(), "-spread", "1m", "-json")
		cmd.Stderr = nil
		pipe, err := cmd.StderrPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		stderr := bufio.NewReader(pipe)
		for line := ""; !strings.Contains(line, " orders created") || strings.Contains(line, " 0 of "); {
			line, err = stderr.ReadString('\n')
			require.NoError(t, err)
		}
		require.NoError(t, cmd.Process.Signal(sig))
		require.NoError(t, cmd.Process.Signal(sig)) // some senders signal twice
		rest, err := io.ReadAll(stderr)
		require.NoError(t, err)
		_ = cmd.Wait()
		require.Equal(t, exitInterrupted, cmd.ProcessState.ExitCode(), "%v %s", cmd.ProcessState, rest)
		require.Contains(t, string(rest), "quickstart: interrupted; the figures so far:\n")
		r := parseReport(t, stdout.String())
		require.Positive(t, r.Orders)
		require.Less(t, r.Orders, int64(madeUpOrders))
		require.Equal(t, r.Orders, r.Paid+r.Closed+r.Open)
		for _, fault := range r.Faults() {
			require.Equal(t, "open", fault.Name)
		}
		requireNoKeys(t, server.Client(t))
	}
}

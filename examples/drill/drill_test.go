package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/examples/internal/built"
	"github.com/orderwheel/orderwheel/internal/redistest"
)

// drill runs the built program, with a folder of its own for temporary files,
// which must be empty in the end.
func drill(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // a hang
	defer cancel()
	temp := t.TempDir()
	cmd := exec.CommandContext(ctx, built.Program(t), args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		require.IsType(t, &exec.ExitError{}, err)
	}
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	require.Empty(t, left)
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func TestADrillOfRandomKillsFindsNoHarm(t *testing.T) {
	t.Parallel()
	redistest.Start(t).Kill() // skips or fails where there is no redis-server
	status, stdout, stderr := drill(t, "-orders", "1000", "-kills", "6")
	require.Zero(t, status, "%s%s", stdout, stderr)
	require.Contains(t, stderr, "round 1 of 1: 1,000 orders, 6 kills\n")
	require.Regexp(t, `orders +1,000\n`, stdout)
	require.NotContains(t, stdout, "WRONG")
}

func TestBadFlagsAreRefusedInOneLine(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"drill: found the argument \"x\", expected flags only\n": {"x"},
		"drill: -orders is 0, expected 1 or more\n":              {"-orders", "0"},
		"drill: -kills is -1, expected 0 or more\n":              {"-kills", "-1"},
		"drill: -rounds is 0, expected 1 or more\n":              {"-rounds", "0"},
		"drill: flag provided but not defined: -what\n":          {"-what"},
	} {
		status, stdout, stderr := drill(t, args...)
		require.Equal(t, exitUsage, status)
		require.Empty(t, stdout)
		require.Equal(t, want, stderr)
	}
}

func TestHelpIsNoError(t *testing.T) {
	t.Parallel()
	status, stdout, stderr := drill(t, "-h")
	require.Zero(t, status)
	require.Equal(t, usage, stdout)
	require.Empty(t, stderr)
}

func TestAWorkerThatFailsIsAnError(t *testing.T) {
	t.Parallel()
	_, err := runWorker(t.Context(), built.Program(t), job{Dir: filepath.Join(t.TempDir(), "no such folder")}, time.Minute)
	require.ErrorContains(t, err, "a worker failed: exit status 1\n")
}

func TestAWorkerThatIsKilledHasNotFinished(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cmd, _, err := workerCommand(ctx, built.Program(t), job{Dir: t.TempDir()})
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	cancel()
	require.Error(t, cmd.Wait())
	require.Equal(t, syscall.SIGKILL, cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())

	finished, err := runWorker(t.Context(), built.Program(t), job{Dir: t.TempDir()}, time.Nanosecond)
	require.NoError(t, err)
	require.False(t, finished)
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
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
	return drillWith(t, "PATH="+os.Getenv("PATH"), args...)
}

func drillWith(t *testing.T, path string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	program := built.Program(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // a hang
	defer cancel()
	temp := t.TempDir()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+temp, path)
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

func TestADrillFindsNoHarm(t *testing.T) {
	t.Parallel()
	redistest.Start(t).Kill() // skips or fails where there is no redis-server
	status, stdout, stderr := drill(t, "-orders", "1000", "-kills", "6", "-redis-kills", "1", "-seed", "1", "-json")
	require.Zero(t, status, "%s%s", stdout, stderr)
	require.Contains(t, stderr, "seed 1\nround 1 of 1: 1,000 orders, 2 workers, 6 kills, 1 kills of Redis\n")
	var f figures
	require.NoError(t, json.Unmarshal([]byte(stdout), &f))
	require.EqualValues(t, 1000, f.Orders)
	require.EqualValues(t, f.Orders, f.Closed+f.Paid)
	require.EqualValues(t, 1, f.Kills["redis"])
	var kills int64
	for _, n := range f.Kills {
		kills += n
	}
	require.EqualValues(t, 7, kills)
}

func TestWithoutARedisServerTheDrillSaysSoAndKillsWorkersOnly(t *testing.T) {
	t.Parallel()
	status, stdout, stderr := drillWith(t, "PATH="+t.TempDir(), "-orders", "200", "-kills", "3", "-redis-kills", "2")
	require.Zero(t, status, "%s%s", stdout, stderr)
	require.Contains(t, stderr, "redis-server is not installed: a Redis in this process serves, so Redis itself is not killed\n")
	require.NotContains(t, stdout, "redis")
	require.NotContains(t, stdout, "WRONG")
	require.Regexp(t, `kills +3 `, stdout)
}

func TestBadFlagsAreRefusedInOneLine(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"drill: found the argument \"x\", expected flags only\n": {"x"},
		"drill: -orders is 0, expected 1 or more\n":              {"-orders", "0"},
		"drill: -kills is -1, expected 0 or more\n":              {"-kills", "-1"},
		"drill: -rounds is 0, expected 1 or more\n":              {"-rounds", "0"},
		"drill: -processes is 0, expected 1 or more\n":           {"-processes", "0"},
		"drill: -redis-kills is -1, expected 0 or more\n":        {"-redis-kills", "-1"},
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

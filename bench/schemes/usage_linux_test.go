package main

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheUsageOfAProcessIsRead(t *testing.T) {
	t.Parallel()
	before := cpuOf(os.Getpid())
	for until := time.Now().Add(10 * time.Second); cpuOf(os.Getpid()) == before && time.Now().Before(until); {
	}
	require.Greater(t, cpuOf(os.Getpid()), before)
	require.Greater(t, peakMemoryOf(os.Getpid()), int64(1<<20))
	require.Zero(t, cpuOf(1<<30))
	require.Zero(t, peakMemoryOf(1<<30))
}

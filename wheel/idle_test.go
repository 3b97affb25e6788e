//go:build unix

package wheel

import (
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The figure of an idle wheel is one of processor time, so it is taken in a
// process of its own, and only where ORDERWHEEL_LONG is set.
// TestAnIdleWheelSleeps counts the wake-ups of an idle wheel in every run.
func TestAnIdleWheelTakesNoProcessorTime(t *testing.T) {
	if ids := os.Getenv("ORDERWHEEL_IDLE_IDS"); ids != "" {
		idle(t, ids)
		return
	}
	if os.Getenv("ORDERWHEEL_LONG") == "" {
		t.Skip("takes 20 s: run by make test-long")
	}
	empty, full := idleProcess(t, 0), idleProcess(t, 1_000_000)
	t.Logf("processor time over 10 s: %v without a wheel, %v with 1,000,000 ids armed", empty, full)
	require.LessOrEqual(t, full-empty, 20*time.Millisecond)
}

// idle arms ids an hour away and prints the processor time of the next 10 s.
func idle(t *testing.T, ids string) {
	n, err := strconv.Atoi(ids)
	require.NoError(t, err)
	if n > 0 {
		w := New(func() int64 { return time.Now().UnixMilli() })
		defer w.Stop()
		w.Start(func([]Due) { t.Error("fired") })
		due := time.Now().Add(time.Hour).UnixMilli()
		for i := range n {
			w.Schedule(strconv.Itoa(i), due+int64(i))
		}
	}
	debug.FreeOSMemory() // or the runtime would do so little by little, in the 10 s
	time.Sleep(time.Second)
	before := processorTime()
	time.Sleep(10 * time.Second)
	fmt.Printf("idle=%d\n", processorTime()-before)
}

func processorTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// idleProcess runs idle in a process of its own.
func idleProcess(t *testing.T, ids int) time.Duration {
	cmd := exec.Command(os.Args[0], "-test.run=^TestAnIdleWheelTakesNoProcessorTime$", "-test.v")
	cmd.Env = append(os.Environ(), fmt.Sprintf("ORDERWHEEL_IDLE_IDS=%d", ids))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	_, rest, ok := strings.Cut(string(out), "idle=")
	require.True(t, ok, "%s", out)
	ns, _, _ := strings.Cut(rest, "\n")
	d, err := strconv.Atoi(ns)
	require.NoError(t, err)
	return time.Duration(d)
}

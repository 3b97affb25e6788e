package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// cpuOf is the time that a process has spent on the processor so far. It is 0 where the
// system does not tell (/proc).
func cpuOf(pid int) time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name, in brackets, may have anything in it. utime and stime are fields 14 and 15.
	_, rest, _ := strings.Cut(string(b[strings.LastIndexByte(string(b), ')'):]), " ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(f[11], 10, 64)
	system, _ := strconv.ParseInt(f[12], 10, 64)
	return time.Duration(user+system) * time.Second / ticksPerSecond
}

// ticksPerSecond is what Linux counts in, on every machine that Go runs on.
const ticksPerSecond = 100

// peakMemoryOf is the most memory that a process had resident, in bytes, or 0.
func peakMemoryOf(pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kB, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kB << 10
		}
	}
	return 0
}

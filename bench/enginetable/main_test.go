package main

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/bench/internal/medians"
)

func TestTheTableHasMediansAndComparesThem(t *testing.T) {
	t.Parallel()
	tab := newTable()
	in := strings.NewReader(`BenchmarkEngine/op=fire/rate=2000-2  1  1.5 canary-p99-ms  9 canary-max-ms  0 early  5 late-p99-ms  12.25 late-max-ms
BenchmarkEngine/op=fire/rate=2000-2  1  1.0 canary-p99-ms  8 canary-max-ms  0 early  4 late-p99-ms  40 late-max-ms
BenchmarkEngine/op=fire/rate=2000-2  1  9.5 canary-p99-ms  7 canary-max-ms  0 early  90 late-p99-ms  10 late-max-ms
BenchmarkEngine/op=storm/due=100000-2  1  45.2 %-of-zadd-pipelined  90123.4 closes/s
BenchmarkEngine/op=recover/tasks=1000000-2  1  81 %-of-zrange
BenchmarkPoller/op=fire/rate=2000-2  1  1.0 canary-p99-ms  0 early  110 late-p99-ms
BenchmarkAsynq/op=fire/rate=2000/every=100ms-2  1  1700 early  160 late-p99-ms
PASS
ok`)
	require.NoError(t, medians.Read(in, io.Discard, tab.add))
	var out strings.Builder
	tab.print(&out)
	require.Regexp(t, `medians\s+unit\s+Engine\s+Poller\s+Asynq every=100ms`, out.String())
	require.Regexp(t, `op=fire rate=2000\s+late-p99-ms\s+5\s+110\s+160`, out.String())
	require.Regexp(t, `op=fire rate=2000\s+early\s+0\s+0\s+1700`, out.String())
	require.Regexp(t, `op=storm due=100000\s+closes/s\s+90123\s+-\s+-`, out.String())
	require.Contains(t, out.String(), "op=fire rate=2000: p99 3.5 ms later than a goroutine that only sleeps")
	require.Contains(t, out.String(), "op=fire rate=2000: max 4.2 ms later than a goroutine that only sleeps")
	require.Contains(t, out.String(), "op=fire rate=2000: the p99 of the poller is 22.0 times as late")
	require.Contains(t, out.String(), "op=storm due=100000: 45 % of the speed of zadd-pipelined")
	require.Contains(t, out.String(), "op=recover tasks=1000000: 81 % of the speed of zrange")
	require.NotContains(t, out.String(), "op=storm due=100000: p99", "it was not measured")
}

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
	tab := table{values: make(map[figure][]float64)}
	in := strings.NewReader(`BenchmarkStore/op=schedule/callers=1-2     100  60000 ns/op  30000 p50-ns
BenchmarkStore/op=schedule/callers=256-2   100  8000 ns/op  2000000 p50-ns
BenchmarkStore/op=schedule/callers=256-2   100  90000 ns/op  2000000 p50-ns
BenchmarkStore/op=schedule/callers=256-2   100  10000 ns/op  2000000 p50-ns
BenchmarkPages-2                           100  90000 ns/op  1000 window-ns  900 zrange-ns
BenchmarkRedis/op=zadd-single/callers=1-2  100  30000 ns/op  20000 p50-ns
BenchmarkRedis/op=zadd-single/callers=256-2 100  25000 ns/op  5000000 p50-ns
BenchmarkStore/op=ack/callers=1/batch=1000-2 100 10000 ns/op
BenchmarkLone-2                            100  90000 ns/op  30000 zadd-p50-ns  39000 handed-zadd-p50-ns  42000 least-script-p50-ns  45000 schedule-p50-ns
BenchmarkRedis/op=zadd-pipelined-2         100  5000 ns/op
PASS
ok`)
	require.NoError(t, medians.Read(in, io.Discard, tab.add))
	var out strings.Builder
	tab.print(&out)
	require.Regexp(t, `Store/op=schedule/callers=256\s+10000\s+2000000`, out.String())
	require.Contains(t, out.String(), "schedule, 256 callers: 2.50 times the speed of single ZADDs")
	require.Contains(t, out.String(), "schedule, 256 callers: 50 % of the speed of pipelined ZADDs")
	require.Contains(t, out.String(), "one caller: p50 1.50 times")
	require.Contains(t, out.String(), "another goroutine: p50 1.30 times")
	require.Contains(t, out.String(), "not handed over: p50 1.40 times")
	require.Contains(t, out.String(), "ack, a thousand at a time: 50 % of the speed of pipelined ZADDs")
	require.NotContains(t, out.String(), "Lone", "its time for each id is of four things")
	require.NotContains(t, out.String(), "Pages", "its time for each id is of two things")
	require.Contains(t, out.String(), "window: 90 % of the speed of ZRANGE")
	require.NotContains(t, out.String(), "claim", "it was not measured")
}

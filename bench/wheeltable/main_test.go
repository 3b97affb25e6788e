package main

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/bench/internal/medians"
)

func TestTheTableHasMediansAndRatios(t *testing.T) {
	t.Parallel()
	tab := table{rows: make(map[row]figures)}
	in := strings.NewReader(`goos: linux
BenchmarkWheel/op=schedule/engine=native/pending=100000-2     	  100	   100 ns/op	   42.0 B/task	   0 B/op	 0 allocs/op
BenchmarkWheel/op=schedule/engine=native/pending=100000-2     	  100	   900 ns/op	   42.0 B/task	   0 B/op	 0 allocs/op
BenchmarkWheel/op=schedule/engine=native/pending=100000-2     	  100	   200 ns/op	   42.0 B/task	   0 B/op	 0 allocs/op
BenchmarkWheel/op=schedule/engine=russellluo/pending=100000-2 	  100	  1600 ns/op	  168.0 B/task	 144 B/op	 4 allocs/op
BenchmarkWheel/op=schedule/engine=native/pending=10000000-2   	  100	   300 ns/op	   42.0 B/task	   0 B/op	 0 allocs/op
PASS
ok`)
	require.NoError(t, medians.Read(in, io.Discard, tab.add))
	var out strings.Builder
	tab.print(&out)
	require.Regexp(t, `Wheel op=schedule pending=100000\s+ns/op\s+200\s+1600\s+-\s+8\.00`, out.String())
	require.Regexp(t, `B/task\s+42\s+168\s+-\s+4\.00`, out.String())
	require.Regexp(t, `Wheel op=schedule pending=10000000\s+ns/op\s+300\s+-\s+-\s*\n`, out.String())
	require.Contains(t, out.String(), "schedule at 10,000,000 pending costs 1.50 times")
	require.NotContains(t, out.String(), "B/op")
}

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestShowPrintsWhatGoTestPrints(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	skips, err := show(strings.NewReader(strings.Join([]string{
		`go: downloading example.com/x`,
		`{"Action":"start","Package":"a"}`,
		`{"Action":"run","Package":"a","Test":"TestGood"}`,
		`{"Action":"output","Package":"a","Test":"TestGood","Output":"=== RUN   TestGood\n"}`,
		`{"Action":"output","Package":"a","Test":"TestGood","Output":"a.go:1: chatter\n"}`,
		`{"Action":"pass","Package":"a","Test":"TestGood"}`,
		`{"Action":"output","Package":"a","Output":"PASS\n"}`,
		`{"Action":"output","Package":"a","Output":"ok  \ta\t0.1s\n"}`,
		`{"Action":"pass","Package":"a"}`,
		`{"Action":"run","Package":"b","Test":"TestBad"}`,
		`{"Action":"run","Package":"b","Test":"TestHung"}`,
		`{"Action":"output","Package":"b","Test":"TestBad","Output":"b.go:1: what went wrong\n"}`,
		`{"Action":"output","Package":"b","Test":"TestHung","Output":"panic: test timed out\n"}`,
		`{"Action":"fail","Package":"b","Test":"TestBad"}`,
		`{"Action":"output","Package":"b","Output":"FAIL\tb\t0.1s\n"}`,
		`{"Action":"fail","Package":"b"}`,
		`{"ImportPath":"c","Action":"build-output","Output":"c.go:1: undefined: x\n"}`,
	}, "\n")), &out)
	require.NoError(t, err)
	require.Empty(t, skips)
	require.Equal(t, strings.Join([]string{
		"go: downloading example.com/x",
		"ok  \ta\t0.1s",
		"b.go:1: what went wrong",
		"FAIL\tb\t0.1s",
		"panic: test timed out",
		"c.go:1: undefined: x",
		"",
	}, "\n"), out.String())
}

func TestASkipIsExcusedOnlyWithAReason(t *testing.T) {
	t.Parallel()
	skips, err := show(strings.NewReader(strings.Join([]string{
		`{"Action":"run","Package":"a","Test":"TestServer"}`,
		`{"Action":"output","Package":"a","Test":"TestServer","Output":"a.go:1: no redis-server\n"}`,
		`{"Action":"output","Package":"a","Test":"TestServer","Output":"--- SKIP: TestServer (0.00s)\n"}`,
		`{"Action":"skip","Package":"a","Test":"TestServer"}`,
		`{"Action":"run","Package":"a","Test":"TestLong"}`,
		`{"Action":"output","Package":"a","Test":"TestLong","Output":"a.go:2: for ` + "`make test-long`" + `\n"}`,
		`{"Action":"skip","Package":"a","Test":"TestLong"}`,
		`{"Action":"run","Package":"a","Test":"TestWheel"}`,
		`{"Action":"output","Package":"a","Test":"TestWheel","Output":"a.go:3: not promised by this engine: why\n"}`,
		`{"Action":"skip","Package":"a","Test":"TestWheel"}`,
		`{"Action":"skip","Package":"no-test-files"}`,
	}, "\n")), &strings.Builder{})
	require.NoError(t, err)
	require.Len(t, skips, 3)
	require.Equal(t, skip{"a", "TestServer", "a.go:1: no redis-server\n--- SKIP: TestServer (0.00s)\n"}, skips[0])
	require.False(t, skips[0].excused())
	require.True(t, skips[1].excused())
	require.True(t, skips[2].excused())
}

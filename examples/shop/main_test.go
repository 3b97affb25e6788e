package main

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSIGTERMAnswersWhatIsUnderWayAndEndsWell(t *testing.T) {
	t.Parallel()
	p := startProcess(t, t.TempDir())
	transport := &http.Transport{ExpectContinueTimeout: hang}
	defer transport.CloseIdleConnections()
	body, send := io.Pipe()
	r, err := http.NewRequestWithContext(t.Context(), "POST", p.url+"/stock/tea", body)
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Expect", "100-continue") // so the body is sent when the shop begins to read it
	status := make(chan int, 1)
	go func() {
		resp, err := transport.RoundTrip(r)
		if err != nil {
			status <- 0
			return
		}
		resp.Body.Close()
		status <- resp.StatusCode
	}()
	_, err = io.WriteString(send, `{"add":`)
	require.NoError(t, err)
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	p.await("msg=stopping")
	_, err = io.WriteString(send, `1}`)
	require.NoError(t, err)
	require.NoError(t, send.Close())
	require.Contains(t, []int{200, 503}, <-status) // 503: not within requestWithin, on a busy machine
	require.Zero(t, p.wait())
}

func TestWithoutARedisTheOrdersComeFromTheDatabaseAtTheNextStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := startProcess(t, dir, "-time-to-pay", "2s")
	before := &testApp{t: t, url: p.url}
	before.post("/stock/tea", `{"add":10}`, 200)
	before.order("o1")
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	require.Zero(t, p.wait())

	after := &testApp{t: t, url: startProcess(t, dir).url}
	after.eventually(func() bool { return after.get("/orders/o1")["status"] == "closed" })
	after.requireTea(10, 0, 0)
}

func TestAShopThatCannotStartSaysWhyAndEnds(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"no Redis answers at 127.0.0.1:1: ": {"-redis", "127.0.0.1:1"},
		"open /no/such/folder/shop.db: ":    {"-db", "/no/such/folder/shop.db"},
		"listen tcp: address 99999":         {"-addr", "127.0.0.1:99999"},
	} {
		_, err := runBriefly(t, args...)
		require.ErrorContains(t, err, want)
	}
}

func TestWithoutARedisTheLogSaysWhatThatCosts(t *testing.T) {
	t.Parallel()
	logs, _ := runBriefly(t, "-addr", "127.0.0.1:99999")
	require.Contains(t, logs, "NO REDIS GIVEN: one in this process serves. It forgets every task at exit")
	logs, _ = runBriefly(t, "-addr", "127.0.0.1:99999", "-trigger", "scan")
	require.NotContains(t, logs, "REDIS")
}

// runBriefly runs a shop that cannot start.
func runBriefly(t *testing.T, args ...string) (logs string, err error) {
	t.Helper()
	o, err := parseFlags(append([]string{"-db", filepath.Join(t.TempDir(), "shop.db")}, args...))
	require.NoError(t, err)
	var out strings.Builder
	err = run(t.Context(), o, &out)
	return out.String(), err
}

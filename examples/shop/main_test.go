package main

import (
	"io"
	"net/http"
	"path/filepath"
	"slices"
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
	for name, c := range map[string]struct {
		args []string
		says []string // what is wrong, and what to do about it
	}{
		"redis":    {[]string{"-redis", "127.0.0.1:1"}, []string{"no Redis answers at 127.0.0.1:1: ", "correct -redis"}},
		"file":     {[]string{"-db", "/no/such/folder/shop.db"}, []string{`-db is "/no/such/folder/shop.db": `, "that can be written"}},
		"postgres": {[]string{"-dsn", "postgres://u:secret@127.0.0.1:1/x"}, []string{"-dsn: ", "start the database"}},
		"mysql":    {[]string{"-dsn", "u:secret@tcp(127.0.0.1:1)/x"}, []string{"-dsn: ", "start the database"}},
		"address":  {[]string{"-addr", "127.0.0.1:99999"}, []string{`-addr is "127.0.0.1:99999": `, "that is free"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := runBriefly(t, c.args...)
			for _, says := range c.says {
				require.ErrorContains(t, err, says)
			}
			require.NotContains(t, err.Error(), "secret")
		})
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
	if !slices.Contains(args, "-dsn") {
		args = append([]string{"-db", filepath.Join(t.TempDir(), "shop.db")}, args...)
	}
	o, err := parseFlags(args)
	require.NoError(t, err)
	var out strings.Builder
	err = run(t.Context(), o, &out)
	return out.String(), err
}

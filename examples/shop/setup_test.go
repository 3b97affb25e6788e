package main

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/orderwheel/orderwheel/internal/dbtest"
)

// hang bounds what must happen but has no speed to keep.
const hang = time.Minute

func TestMain(m *testing.M) {
	redis.SetLogger(&logging.VoidLogger{})
	if dir := os.Getenv(notesDir); dir != "" {
		os.Exit(child(dir, os.Args[1:]))
	}
	goleak.VerifyTestMain(dbtest.Stopping(m),
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).purgeStaleWorkers"),
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).ticktock"))
}

// testApp is an app behind a server, in this process.
type testApp struct {
	*api
	t    *testing.T
	url  string
	stop func() // also called when the test ends
}

// open starts an app with a database in dir.
func open(t *testing.T, dir string, args ...string) *testApp {
	t.Helper()
	return openWith(t, append([]string{"-db", filepath.Join(dir, "shop.db")}, args...)...)
}

func openWith(t *testing.T, args ...string) *testApp {
	t.Helper()
	o, err := parseFlags(args)
	require.NoError(t, err)
	a, closeApp, err := openApp(t.Context(), o, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	server := httptest.NewServer(a.handler())
	stopped := false
	stop := func() {
		if !stopped {
			stopped = true
			server.Close()
			require.NoError(t, closeApp())
		}
	}
	t.Cleanup(stop)
	return &testApp{a, t, server.URL, stop}
}

// setup is open with ten units of tea.
func setup(t *testing.T, args ...string) *testApp {
	t.Helper()
	a := open(t, t.TempDir(), args...)
	a.post("/stock/tea", `{"add":10}`, 200)
	return a
}

// answer is what a request was answered with.
type answer struct {
	status int
	header http.Header
	body   map[string]any
}

func (a *testApp) send(r *http.Request) answer {
	a.t.Helper()
	resp, err := http.DefaultClient.Do(r)
	require.NoError(a.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(a.t, err)
	require.Equal(a.t, "application/json", resp.Header.Get("Content-Type"), "%s", text)
	ans := answer{status: resp.StatusCode, header: resp.Header}
	require.NoError(a.t, json.Unmarshal(text, &ans.body), "%s", text)
	return ans
}

func (a *testApp) request(method, path, body string) *http.Request {
	a.t.Helper()
	r, err := http.NewRequestWithContext(a.t.Context(), method, a.url+path, strings.NewReader(body))
	require.NoError(a.t, err)
	r.Header.Set("Content-Type", "application/json")
	return r
}

// post posts JSON and requires the status of the answer.
func (a *testApp) post(path, body string, status int) map[string]any {
	a.t.Helper()
	ans := a.send(a.request("POST", path, body))
	require.Equal(a.t, status, ans.status, "%s: %v", path, ans.body)
	return ans.body
}

func (a *testApp) get(path string) map[string]any {
	a.t.Helper()
	ans := a.send(a.request("GET", path, ""))
	require.Equal(a.t, 200, ans.status, "%s: %v", path, ans.body)
	return ans.body
}

// order places an order of two teas for 500.
func (a *testApp) order(no string) map[string]any {
	a.t.Helper()
	return a.post("/orders", orderBody(no), 201)
}

func orderBody(no string) string {
	return `{"order_no":"` + no + `","user_id":"ann","amount":500,"items":[{"sku":"tea","quantity":2}]}`
}

func (a *testApp) requireStatus(no, want string) {
	a.t.Helper()
	require.Equal(a.t, want, a.get("/orders/" + no)["status"], no)
}

func (a *testApp) requireTea(stock, locked, sold float64) {
	a.t.Helper()
	require.Equal(a.t, map[string]any{"sku": "tea", "stock": stock, "locked": locked, "sold": sold}, a.get("/stock/tea"))
}

// dueMS is when Redis has the task of an order due; 0: it has none that is.
func (a *testApp) dueMS(no string) int64 {
	a.t.Helper()
	rec, err := a.shop.engine.Lookup(a.t.Context(), no)
	require.NoError(a.t, err)
	return rec.DueMS
}

func expireMS(t *testing.T, order map[string]any) int64 {
	t.Helper()
	at, err := time.Parse(time.RFC3339, order["expire_at"].(string))
	require.NoError(t, err)
	return at.UnixMilli()
}

func (a *testApp) eventually(what func() bool) {
	a.t.Helper()
	require.Eventually(a.t, what, hang, 5*time.Millisecond)
}

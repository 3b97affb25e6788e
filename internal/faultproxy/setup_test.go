package faultproxy

import (
	"context"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/internal/redistest"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hang bounds what must happen but has no speed to keep.
const hang = 10 * time.Second

// rig is a proxy before a real redis-server.
type rig struct {
	*Proxy
	server *redistest.Server
	direct *redis.Client // past the proxy
}

func setup(t *testing.T) rig {
	t.Helper()
	t.Parallel()
	s := redistest.Start(t)
	return rig{Proxy: Start(t, s.Addr()), server: s, direct: s.Client(t)}
}

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	t.Cleanup(cancel)
	return ctx
}

// client is a go-redis client through the proxy, as package persist uses one.
func (r rig) client(t *testing.T) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: r.Addr(), ContextTimeoutEnabled: true, MaxRetries: -1})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// has checks a key past the proxy; "" where it is not there.
func (r rig) has(t *testing.T, key, want string) {
	t.Helper()
	got, err := r.direct.Get(bounded(t), key).Result()
	if err != redis.Nil {
		require.NoError(t, err)
	}
	require.Equal(t, want, got, "key %s", key)
}

// await waits for the counts.
func (r rig) await(t *testing.T, ready func(Counts) bool) {
	t.Helper()
	require.NoError(t, r.Wait(bounded(t), ready))
}

// wire is a connection through the proxy without a client library: one that asks
// nothing by itself.
type wire struct {
	net.Conn
	in *reader
}

func (r rig) dial(t *testing.T) wire {
	t.Helper()
	conn, err := net.Dial("tcp", r.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(hang)))
	return wire{Conn: conn, in: newReader(conn, false)}
}

func (w wire) send(t *testing.T, format string, args ...any) {
	t.Helper()
	_, err := fmt.Fprintf(w, format, args...)
	require.NoError(t, err)
}

// says checks what comes next.
func (w wire) says(t *testing.T, want ...string) {
	t.Helper()
	for _, m := range want {
		got, err := w.in.next()
		require.NoError(t, err)
		require.Equal(t, m, string(got))
	}
}

// isCut checks that the connection was closed, and nothing more came.
func (w wire) isCut(t *testing.T) {
	t.Helper()
	m, err := w.in.next()
	require.Error(t, err, "%q", m)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "it hangs")
}

// hangs checks that it is neither closed nor says anything for a while.
func (w wire) hangs(t *testing.T) {
	t.Helper()
	require.NoError(t, w.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
	m, err := w.in.next()
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "%q", m)
	require.NoError(t, w.SetDeadline(time.Now().Add(hang)))
}

package redistest

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// Mini starts a miniredis in the process and returns a client of it; both end
// with the test.
func Mini(t testing.TB) *redis.Client {
	t.Helper()
	_, c := MiniServer(t)
	return c
}

// MiniServer is Mini for tests that turn the server's knobs, its clock for one.
func MiniServer(t testing.TB) (*miniredis.Miniredis, *redis.Client) {
	t.Helper()
	m := miniredis.NewMiniRedis()
	if err := m.Start(); err != nil {
		t.Fatalf("redistest: miniredis does not start: %v", err)
	}
	c := redis.NewClient(&redis.Options{Addr: m.Addr(), ContextTimeoutEnabled: true})
	t.Cleanup(func() {
		_ = c.Close()
		// A call that was given up may still be at work there, and miniredis does not
		// survive an INFO while it closes.
		for end := time.Now().Add(10 * time.Second); busy(m) && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		m.Close()
	})
	return m, c
}

// busy tells whether m has connections; a test may have closed it already.
func busy(m *miniredis.Miniredis) bool { return m.Server() != nil && m.CurrentConnectionCount() > 0 }

package redistest

import (
	"testing"

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
	t.Cleanup(m.Close)
	c := redis.NewClient(&redis.Options{Addr: m.Addr(), ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = c.Close() })
	return m, c
}

//go:build !race

// miniredis parses a script at every call, which takes it ten times as long under -race. What
// could race is the store's, and that does the same against a real Redis.

package persist_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/orderwheel/orderwheel/internal/redistest"
	"github.com/orderwheel/orderwheel/persist"
	"github.com/orderwheel/orderwheel/persist/persisttest"
)

func TestConformanceOfMiniredis(t *testing.T) {
	t.Parallel()
	persisttest.Run(t, func(t *testing.T) persisttest.Bed {
		m, client := redistest.MiniServer(t)
		now := noon
		m.SetTime(now)
		return persisttest.Bed{
			Store: newStore(t, client),
			Slow:  true,
			Advance: func(d time.Duration) {
				now = now.Add(d)
				m.SetTime(now)
			},
			Owner: func(t *testing.T) persist.Store {
				c := redis.NewClient(&redis.Options{Addr: m.Addr(), ContextTimeoutEnabled: true})
				t.Cleanup(func() { _ = c.Close() })
				return newStore(t, c)
			},
		}
	})
}

func TestRandomOperationsDoWhatTheModelDoesOnMiniredis(t *testing.T) {
	t.Parallel()
	for _, seed := range persisttest.Seeds(t, 5) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			walk(t, setupMini(t), seed, 200)
		})
	}
}

package persist_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/internal/faultproxy"
	"github.com/orderwheel/orderwheel/persist"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// everyCall is each operation of a store that talks to Redis, once.
func everyCall(s *persist.Redis) map[string]func(ctx context.Context) error {
	x := persist.Lease{ID: "x", Token: "tok"}
	return map[string]func(ctx context.Context) error{
		"schedule": func(ctx context.Context) error { return s.Schedule(ctx, []persist.Due{{ID: "y", DueMS: past}}) },
		"cancel":   func(ctx context.Context) error { _, err := s.Cancel(ctx, []string{"y"}); return err },
		"claim": func(ctx context.Context) error {
			_, err := s.Claim(ctx, "tok2", []string{"y"}, time.Second, 0)
			return err
		},
		"retry": func(ctx context.Context) error {
			_, err := s.Retry(ctx, []persist.Retry{{Lease: x, DueMS: 7}})
			return err
		},
		"ack": func(ctx context.Context) error { _, err := s.Ack(ctx, []persist.Lease{x}); return err },
		"bury": func(ctx context.Context) error {
			_, err := s.Bury(ctx, []persist.Burial{{Lease: x}})
			return err
		},
		"renew": func(ctx context.Context) error {
			_, err := s.Renew(ctx, []persist.Lease{x}, time.Second)
			return err
		},
		"requeue": func(ctx context.Context) error { _, err := s.Requeue(ctx, []string{"x"}); return err },
		"ensure": func(ctx context.Context) error {
			_, err := s.Ensure(ctx, []persist.Due{{ID: "x", DueMS: 7}})
			return err
		},
		"taketurn": func(ctx context.Context) error {
			_, _, err := s.TakeTurn(ctx, "x", time.Second, true)
			return err
		},
		"endturn": func(ctx context.Context) error { _, err := s.EndTurn(ctx, "x", time.Second); return err },
		"discard": func(ctx context.Context) error { _, err := s.Discard(ctx, []string{"x"}); return err },
		"reap":    func(ctx context.Context) error { _, err := s.Reap(ctx, 1); return err },
		"window":  func(ctx context.Context) error { _, err := s.Window(ctx, persist.Cursor{}, 1, 1); return err },
		"dead":    func(ctx context.Context) error { _, err := s.Dead(ctx, persist.Cursor{}, 1); return err },
		"lookup":  func(ctx context.Context) error { _, err := s.Lookup(ctx, []string{"x"}); return err },
		"depth":   func(ctx context.Context) error { _, err := s.Depth(ctx); return err },
		"now":     func(ctx context.Context) error { _, err := s.Now(ctx); return err },
	}
}

// Case 89, where the network is to blame: the peer is gone, and nobody says so. New
// connections hang in the client's handshake.
func TestEveryCallOnAHalfOpenConnectionReturnsWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	for _, listens := range []bool{true, false} {
		t.Run(fmt.Sprintf("ContextTimeoutEnabled=%v", listens), func(t *testing.T) {
			t.Parallel()
			b, p := behindProxy(t, setupReal(t))
			c := redis.NewClient(&redis.Options{Addr: p.Addr(), ContextTimeoutEnabled: listens, ReadTimeout: time.Hour})
			t.Cleanup(func() { _ = c.Close() })
			store := newStore(t, c)
			_, err := store.Now(t.Context()) // a connection stands
			require.NoError(t, err)
			p.HangAll()
			p.SetWelcome(func(int) faultproxy.Welcome { return faultproxy.HangAtOnce })

			hung := time.AfterFunc(10*time.Second, func() { panic("ctx does not end a call") })
			var wg sync.WaitGroup
			for name, call := range everyCall(store) {
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
					defer cancel()
					checkEnded(t, name, call(ctx), context.DeadlineExceeded)
				})
				wg.Go(func() {
					ctx, cancel := context.WithCancel(t.Context())
					defer time.AfterFunc(50*time.Millisecond, cancel).Stop()
					checkEnded(t, name, call(ctx), context.Canceled)
				})
			}
			wg.Wait()
			hung.Stop()
			b.requireEmpty(t) // nothing got through

			// The network comes back, and the old connections are reset.
			require.NoError(t, p.Normal())
			p.CutAll()
			for name, call := range everyCall(store) {
				require.NoError(t, call(bounded(t)), name)
			}
		})
	}
}

// checkEnded checks the error of a call that ctx ended.
func checkEnded(t *testing.T, name string, err, ctxErr error) {
	assert.ErrorIs(t, err, ctxErr, name)
	assert.ErrorIs(t, err, persist.ErrRetryable, name)
	if name == "window" || name == "now" {
		assert.NotErrorIs(t, err, persist.ErrUnknownOutcome, name)
	}
}

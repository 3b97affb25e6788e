package persist_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/internal/faultproxy"
	"github.com/orderwheel/orderwheel/persist"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// proxy is a proxy whose rules are asked about script calls, and whose other
// commands pass.
type proxy struct {
	*faultproxy.Proxy

	mu struct {
		sync.Mutex
		calls [][]string // every script call seen
	}
}

// What is done to one script call.
var (
	pass       = faultproxy.Action{}
	notSent    = faultproxy.Do(faultproxy.CutRequest)
	lostAnswer = faultproxy.Do(faultproxy.DropReply)
	noAnswer   = faultproxy.Do(faultproxy.SwallowReply)
)

func errorReply(msg string) faultproxy.Action { return faultproxy.Answer("-" + msg + "\r\n") }

// behindProxy returns a bed whose store talks through a proxy and whose client does
// not. Redis knows the scripts already.
func behindProxy(t testing.TB, b bed) (bed, *proxy) {
	t.Helper()
	b.loadScripts(t)
	p := &proxy{Proxy: faultproxy.Start(t, b.client.Options().Addr)}
	p.decide(nil)
	b.Redis = newStore(t, p.client(t))
	return b, p
}

// client returns a new client that talks through the proxy.
func (p *proxy) client(t testing.TB) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: p.Addr(), ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// loadScripts has every script run once, on nothing.
func (b bed) loadScripts(t testing.TB) {
	t.Helper()
	ctx := t.Context()
	b.scheduled(t, 1, "x")
	_, err := b.Claim(ctx, "tok", []string{"x"}, time.Hour, 0)
	require.NoError(t, err)
	_, err = b.Ack(ctx, []persist.Lease{{ID: "x", Token: "tok"}})
	require.NoError(t, err)
	_, err = b.Retry(ctx, []persist.Retry{{Lease: persist.Lease{ID: "x", Token: "tok"}}})
	require.NoError(t, err)
	_, err = b.Cancel(ctx, []string{"x"})
	require.NoError(t, err)
	_, err = b.EndTurn(ctx, "owner", time.Hour)
	require.NoError(t, err)
	_, err = b.Reap(ctx, 1)
	require.NoError(t, err)
	_, err = b.Bury(ctx, []persist.Burial{{Lease: persist.Lease{ID: "x", Token: "tok"}}})
	require.NoError(t, err)
	_, err = b.Renew(ctx, []persist.Lease{{ID: "x", Token: "tok"}}, time.Hour)
	require.NoError(t, err)
	_, err = b.Requeue(ctx, []string{"x"})
	require.NoError(t, err)
	_, err = b.Discard(ctx, []string{"x"})
	require.NoError(t, err)
	_, err = b.Dead(ctx, persist.Cursor{}, 1)
	require.NoError(t, err)
	_, err = b.Lookup(ctx, []string{"x"})
	require.NoError(t, err)
	_, err = b.Depth(ctx)
	require.NoError(t, err)
	_, err = b.Window(ctx, persist.Cursor{}, 1, 1)
	require.NoError(t, err)
	_, err = b.Now(ctx)
	require.NoError(t, err)
	_, err = b.Epoch(ctx)
	require.NoError(t, err)
	b.requireEmpty(t)
}

// faults does these to the next script calls, one each.
func (p *proxy) faults(list ...faultproxy.Action) { p.decide(faultproxy.Next(list...)) }

// decide has next asked about each script call from now on; nil lets all pass.
func (p *proxy) decide(next faultproxy.Rule) {
	p.SetRule(faultproxy.Only(func(c faultproxy.Command) faultproxy.Action {
		p.mu.Lock()
		p.mu.calls = append(p.mu.calls, c.Words)
		p.mu.Unlock()
		if next == nil {
			return pass
		}
		return next(c)
	}, "evalsha", "eval"))
}

// seen returns the script calls so far.
func (p *proxy) seen() [][]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.mu.calls)
}

// names returns the names of the script calls so far.
func (p *proxy) names() (names []string) {
	for _, call := range p.seen() {
		names = append(names, strings.ToLower(call[0]))
	}
	return names
}

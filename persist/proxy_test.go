package persist_test

import (
	"bufio"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/persist"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// fault says what a proxy does with one script call.
type fault struct {
	reply      string // answered instead, as it stands on the wire: "-BUSY ...\r\n"
	dropBefore bool   // the connection breaks before Redis gets the call
	dropAfter  bool   // Redis executes it, then the connection breaks
	swallow    bool   // Redis executes it, and the answer never comes
}

func errorReply(msg string) fault { return fault{reply: "-" + msg + "\r\n"} }

// proxy stands between a client and Redis and does to EVALSHA and EVAL what it is
// told; everything else passes.
type proxy struct {
	l      net.Listener
	target string

	mu struct {
		sync.Mutex
		next  func(call []string) fault // nil: pass
		calls [][]string                // every script call seen
	}
}

func newProxy(t testing.TB, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{l: l, target: target}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(conn)
		}
	}()
	return p
}

// behindProxy returns a bed whose store talks through a proxy and whose client does
// not. Redis knows the scripts already.
func behindProxy(t testing.TB, b bed) (bed, *proxy) {
	t.Helper()
	b.loadScripts(t)
	p := newProxy(t, b.client.Options().Addr)
	c := redis.NewClient(&redis.Options{Addr: p.l.Addr().String(), ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = c.Close() })
	b.Redis = newStore(t, c)
	return b, p
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
	b.requireEmpty(t)
}

// faults does these to the next script calls, one each.
func (p *proxy) faults(list ...fault) {
	p.decide(func([]string) fault {
		if len(list) == 0 {
			return fault{}
		}
		f := list[0]
		list = list[1:]
		return f
	})
}

// decide is asked, under the proxy's lock, about each script call.
func (p *proxy) decide(next func(call []string) fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.next = next
}

// seen returns the names of the script calls so far.
func (p *proxy) seen() (names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.mu.calls {
		names = append(names, c[0])
	}
	return names
}

func (p *proxy) judge(call []string) fault {
	if name := strings.ToLower(call[0]); name != "evalsha" && name != "eval" {
		return fault{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.calls = append(p.mu.calls, call)
	if p.mu.next == nil {
		return fault{}
	}
	return p.mu.next(call)
}

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer server.Close()
	fromClient, fromServer := bufio.NewReader(client), bufio.NewReader(server)
	for {
		raw, call, err := readValue(fromClient)
		if err != nil {
			return
		}
		f := p.judge(call)
		if f.dropBefore {
			return
		}
		if f.reply == "" {
			if _, err := server.Write(raw); err != nil {
				return
			}
			answer, _, err := readValue(fromServer)
			if err != nil || f.dropAfter {
				return
			}
			f.reply = string(answer)
		}
		if f.swallow {
			continue
		}
		if _, err := io.WriteString(client, f.reply); err != nil {
			return
		}
	}
}

// readValue reads one RESP value. It returns its bytes, and the words in it.
func readValue(r *bufio.Reader) (raw []byte, words []string, err error) {
	raw, err = r.ReadBytes('\n')
	if err != nil || len(raw) < 3 {
		return raw, nil, err
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(raw[1:])))
	switch raw[0] {
	case '$', '=', '!':
		if n < 0 {
			return raw, nil, nil
		}
		body := make([]byte, n+2)
		_, err := io.ReadFull(r, body)
		return append(raw, body...), []string{string(body[:n])}, err
	case '%':
		n *= 2
	case '*', '~', '>':
	default:
		return raw, nil, nil
	}
	for range n {
		part, w, err := readValue(r)
		if err != nil {
			return nil, nil, err
		}
		raw, words = append(raw, part...), append(words, w...)
	}
	return raw, words, nil
}

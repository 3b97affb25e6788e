package faultproxy

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWithoutARuleNothingChanges(t *testing.T) {
	r := setup(t)
	ctx := bounded(t)
	for _, protocol := range []int{2, 3} {
		c := redis.NewClient(&redis.Options{Addr: r.Addr(), Protocol: protocol, ContextTimeoutEnabled: true})
		t.Cleanup(func() { _ = c.Close() })
		require.NoError(t, c.FlushAll(ctx).Err())

		large := strings.Repeat("\r\n$5", 1<<20)
		require.NoError(t, c.Set(ctx, "large", large, 0).Err())
		require.True(t, large == c.Get(ctx, "large").Val())
		require.Equal(t, redis.Nil, c.Get(ctx, "none").Err())
		require.ErrorContains(t, c.LPush(ctx, "large", "x").Err(), "WRONGTYPE")

		nested, err := c.Eval(ctx, "return {1, {'a', {}, {false, 'b'}}, ARGV[1]}", nil, "\x00\xff").Result()
		require.NoError(t, err)
		require.Equal(t, []any{int64(1), []any{"a", []any{}, []any{nil, "b"}}, "\x00\xff"}, nested)

		pipe := c.Pipeline()
		const n = 3 * maxPending
		for i := range n {
			pipe.Set(ctx, fmt.Sprint("k", i), i, 0)
			pipe.Get(ctx, fmt.Sprint("k", i))
		}
		cmds, err := pipe.Exec(ctx)
		require.NoError(t, err)
		for i := range n {
			require.Equal(t, fmt.Sprint(i), cmds[2*i+1].(*redis.StringCmd).Val())
		}

		tx := c.TxPipeline()
		incr := tx.Incr(ctx, "n")
		hash := tx.HSet(ctx, "h", "f", "v")
		_, err = tx.Exec(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 1, incr.Val())
		require.EqualValues(t, 1, hash.Val())
		require.Equal(t, map[string]string{"f": "v"}, c.HGetAll(ctx, "h").Val())
	}
	got := r.Counts()
	require.Equal(t, got.Commands, got.Answered)
	require.Equal(t, got.Commands, got.Executed)
}

func TestManyClientsAtOnceGetTheirOwnAnswers(t *testing.T) {
	r := setup(t)
	c := r.client(t)
	var wg sync.WaitGroup
	for caller := range 16 {
		wg.Go(func() {
			for i := range 50 {
				want := fmt.Sprintf("%d-%d", caller, i)
				got, err := c.Echo(bounded(t), want).Result()
				assert.NoError(t, err)
				assert.Equal(t, want, got)
			}
		})
	}
	wg.Wait()
}

// Client-side caching makes a server push by itself.
func TestAPushPassesAsItComes(t *testing.T) {
	r := setup(t)
	w := r.dial(t)
	w.send(t, "HELLO 3\r\n")
	_, err := w.in.next()
	require.NoError(t, err)
	w.send(t, "CLIENT TRACKING ON\r\nGET k\r\n")
	w.says(t, "+OK\r\n", "_\r\n")
	r.direct.Set(bounded(t), "k", "v", 0)
	w.says(t, ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n") // nothing was asked
	require.Equal(t, 1, r.Counts().Pushes)

	// Amid replies, too: the client changes keys that it has read itself.
	w.send(t, "GET k\r\nSET k w\r\nGET k\r\n")
	w.says(t, "$1\r\nv\r\n", "+OK\r\n")
	var got []string
	for range 2 {
		m, err := w.in.next()
		require.NoError(t, err)
		got = append(got, string(m))
	}
	require.ElementsMatch(t, []string{">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n", "$1\r\nw\r\n"}, got)
}

func TestInlineCommandsAndEmptyOnesAreUnderstood(t *testing.T) {
	r := setup(t)
	w := r.dial(t)
	w.send(t, "\r\n*0\r\nSET k v\r\n*-1\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n\r\n")
	w.says(t, "+OK\r\n", "$1\r\nv\r\n")
	require.Equal(t, 2, r.Counts().Commands)
}

// What a client asked before it closed its side is answered.
func TestAClientThatOnlyListensAnyMoreIsAnswered(t *testing.T) {
	r := setup(t)
	w := r.dial(t)
	w.send(t, "INCR n\r\nINCR n\r\n")
	require.NoError(t, w.Conn.(*net.TCPConn).CloseWrite())
	w.says(t, ":1\r\n", ":2\r\n")
	w.isCut(t)
	r.await(t, func(c Counts) bool { return c.Open == 0 })
}

func TestRulesSeeEachCommandOnceAndInOrder(t *testing.T) {
	r := setup(t)
	var seen []Command
	r.SetRule(func(c Command) Action {
		seen = append(seen, c)
		return Action{}
	})
	a, b := r.dial(t), r.dial(t)
	a.send(t, "PING\r\nECHO x\r\n")
	a.says(t, "+PONG\r\n", "$1\r\nx\r\n")
	b.send(t, "*2\r\n$4\r\nEcho\r\n$2\r\n\r\n\r\n")
	b.says(t, "$2\r\n\r\n\r\n")
	r.SetRule(nil)
	require.Len(t, seen, 3)
	require.Equal(t, []string{"Echo", "\r\n"}, seen[2].Words)
	require.Equal(t, "echo", seen[2].Name())
	for i, c := range seen {
		require.Equal(t, i+1, c.N)
	}
	require.Equal(t, seen[0].Conn, seen[1].Conn)
	require.NotEqual(t, seen[0].Conn, seen[2].Conn)
}

func TestWhatDoesNotSpeakRESPIsCut(t *testing.T) {
	r := setup(t)
	w := r.dial(t)
	w.send(t, "*1\r\n+PING\r\n")
	w.isCut(t)
	require.Equal(t, 1, r.Counts().Malformed)

	// A server that speaks something else.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		conn, err := l.Accept()
		if assert.NoError(t, err) {
			_, _ = conn.Write([]byte("220 mail\r\n"))
			_, _ = conn.Read(make([]byte, 1))
			_ = conn.Close()
		}
	})
	other := rig{Proxy: Start(t, l.Addr().String())}
	other.dial(t).isCut(t)
	require.Equal(t, 1, other.Counts().Malformed)
	wg.Wait()
	require.NoError(t, l.Close())
}

func TestAServerThatIsGoneCutsTheClient(t *testing.T) {
	r := setup(t)
	w := r.dial(t)
	w.send(t, "PING\r\n")
	w.says(t, "+PONG\r\n")
	r.server.Kill()
	w.isCut(t)
	r.dial(t).isCut(t)
	r.server.Restart()
	w = r.dial(t)
	w.send(t, "PING\r\n")
	w.says(t, "+PONG\r\n")
}

func TestAWaitEndsWithItsContextAndWithTheProxy(t *testing.T) {
	r := setup(t)
	never := func(Counts) bool { return false }
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, r.Wait(ctx, never), context.Canceled)
	_, err := r.NextHeld(ctx)
	require.ErrorIs(t, err, context.Canceled)

	var wg sync.WaitGroup
	wg.Go(func() { assert.ErrorIs(t, r.Wait(bounded(t), never), ErrClosed) })
	wg.Go(func() {
		_, err := r.NextHeld(bounded(t))
		assert.ErrorIs(t, err, ErrClosed)
	})
	r.Close()
	wg.Wait()
	require.ErrorIs(t, r.Listen(), ErrClosed)
}

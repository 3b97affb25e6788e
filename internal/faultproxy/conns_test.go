package faultproxy

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Faults of whole connections.

func TestAConnectionCanBeCutOrHangRightAfterAccept(t *testing.T) {
	r := setup(t)
	r.SetWelcome(func(n int) Welcome {
		return map[int]Welcome{1: CutAtOnce, 2: HangAtOnce}[n]
	})
	r.dial(t).isCut(t)
	second := r.dial(t)
	second.send(t, "PING\r\n")
	second.hangs(t)
	third := r.dial(t)
	third.send(t, "PING\r\n")
	third.says(t, "+PONG\r\n")
	got := r.Counts()
	require.Equal(t, 3, got.Conns)
	require.Equal(t, 1, got.CutAtOnce)
	require.Equal(t, 1, got.Hung)
	require.Equal(t, 1, got.Commands)
}

func TestAHalfOpenConnectionNeitherReadsNorAnswers(t *testing.T) {
	r := setup(t)
	w := r.dial(t)
	w.send(t, "INCR n\r\n")
	w.says(t, ":1\r\n")
	r.HangAll()
	w.send(t, "INCR n\r\n")
	w.hangs(t)
	r.server.Kill()
	w.hangs(t) // nothing is heard of that either
	require.Equal(t, 1, r.Counts().Commands)
	r.server.Restart()

	next := r.dial(t) // new ones work
	next.send(t, "PING\r\n")
	next.says(t, "+PONG\r\n")
	require.NoError(t, r.Normal())
	w.hangs(t) // it stays as it is
	r.CutAll()
	w.isCut(t)
	next.isCut(t)
	r.await(t, func(c Counts) bool { return c.Open == 0 })
}

// A half-open connection takes no more than what fits into the buffers of the kernel.
func TestAHalfOpenConnectionStopsAClientThatWrites(t *testing.T) {
	r := setup(t)
	w := r.dial(t)
	w.send(t, "PING\r\n")
	w.says(t, "+PONG\r\n")
	r.SetRule(Next(Do(Hang)))
	require.NoError(t, w.SetWriteDeadline(time.Now().Add(200*time.Millisecond)))
	var err error
	for chunk := make([]byte, 1<<20); err == nil; {
		copy(chunk, "PING\r\n")
		_, err = w.Write(chunk)
	}
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	require.True(t, timeout.Timeout())
}

func TestNewConnectionsAreRefusedAndOldOnesGoOn(t *testing.T) {
	r := setup(t)
	w := r.dial(t)
	w.send(t, "PING\r\n")
	w.says(t, "+PONG\r\n")
	addr := r.Addr()
	r.Refuse()
	r.Refuse()
	_, err := net.Dial("tcp", addr)
	require.ErrorContains(t, err, "refused")
	require.Error(t, r.client(t).Ping(bounded(t)).Err())
	w.send(t, "PING\r\n")
	w.says(t, "+PONG\r\n")
	require.NoError(t, r.Listen())
	require.NoError(t, r.Listen())
	require.Equal(t, addr, r.Addr())
	require.NoError(t, r.client(t).Ping(bounded(t)).Err())
}

func TestNormalEndsAllRules(t *testing.T) {
	r := setup(t)
	r.SetRule(func(Command) Action { return Do(CutRequest) })
	r.SetWelcome(func(int) Welcome { return CutAtOnce })
	r.Refuse()
	c := r.client(t)
	require.Error(t, c.Ping(bounded(t)).Err())
	require.NoError(t, r.Listen())
	require.Error(t, c.Ping(bounded(t)).Err())
	require.NoError(t, r.Normal())
	require.NoError(t, c.Ping(bounded(t)).Err())
}

// Close returns whatever the connections are at; goleak sees the rest.
func TestCloseEndsWhateverGoesOn(t *testing.T) {
	r := setup(t)
	open := []wire{r.dial(t), r.dial(t), r.dial(t), r.dial(t), r.dial(t), r.dial(t), r.dial(t)}
	faults := []Action{
		Do(Hold), Do(Hang), Do(SwallowReply), {DelayRequest: time.Hour}, {DelayReply: time.Hour}, Do(HoldReply), {},
	}
	for i, w := range open {
		r.SetRule(Next(faults[i]))
		w.send(t, "PING\r\n")
		r.await(t, func(c Counts) bool { return c.Commands == i+1 })
	}
	r.SetWelcome(func(int) Welcome { return HangAtOnce })
	open = append(open, r.dial(t))
	r.await(t, func(c Counts) bool {
		return c.Hung == 3 && c.Held == 2 && c.DelayedReplies == 1 && c.DelayedRequests == 1 && c.Answered == 1
	})

	// One more waits for a server that does not answer.
	require.NoError(t, r.Normal())
	r.server.Pause()
	defer r.server.Resume()
	asks := r.dial(t)
	asks.send(t, "PING\r\n")
	r.await(t, func(c Counts) bool { return c.Sent == 5 })

	r.Close()
	r.Close()
	for _, w := range append(open, asks) {
		if w == open[6] {
			w.says(t, "+PONG\r\n")
		}
		w.isCut(t)
	}
	require.Zero(t, r.Counts().Open)
}

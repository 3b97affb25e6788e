package faultproxy

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// late has the next SET held, sends it, and returns it when it is in the proxy's hands.
func late(t *testing.T, r rig, w wire, f Fault) *Held {
	t.Helper()
	r.SetRule(Only(Next(Do(f)), "set"))
	w.send(t, "SET k late\r\n")
	h, err := r.NextHeld(bounded(t))
	require.NoError(t, err)
	require.Equal(t, []string{"SET", "k", "late"}, h.Words)
	require.Equal(t, 1, r.Counts().Held)
	return h
}

// released lets it go after another connection has written, and sees it win.
func released(t *testing.T, r rig, h *Held) {
	t.Helper()
	other := r.dial(t)
	other.send(t, "SET k early\r\nGET k\r\n")
	other.says(t, "+OK\r\n", "$5\r\nearly\r\n")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, h.Executed(ended), context.Canceled, "not before it is released")
	h.Release()
	h.Release() // twice is once
	require.NoError(t, h.Executed(bounded(t)))
	r.has(t, "k", "late")
}

func TestAHeldRequestIsExecutedAfterLaterOnesOfOthers(t *testing.T) {
	r := setup(t)
	w := r.dial(t)
	h := late(t, r, w, Hold)
	w.send(t, "GET k\r\n") // behind it
	w.hangs(t)
	released(t, r, h)
	w.says(t, "+OK\r\n", "$4\r\nlate\r\n")
}

func TestAHeldRequestIsExecutedThoughItsClientHasGone(t *testing.T) {
	r := setup(t)
	w := r.dial(t)
	h := late(t, r, w, Hold)
	require.NoError(t, w.Close())
	released(t, r, h)
	r.await(t, func(c Counts) bool { return c.Open <= 1 })
}

func TestAHeldRequestIsExecutedThoughAllClientsWereCut(t *testing.T) {
	r := setup(t)
	w := r.dial(t)
	h := late(t, r, w, Hold)
	r.CutAll()
	w.isCut(t)
	released(t, r, h)
}

func TestAClientCanBeCutWhileItsRequestIsHeld(t *testing.T) {
	r := setup(t)
	w := r.dial(t)
	w.send(t, "PING\r\n")
	h := late(t, r, w, HoldAndCut)
	w.says(t, "+PONG\r\n")
	w.isCut(t)
	released(t, r, h)
	require.Zero(t, r.Counts().CutRequests)
}

func TestHeldRequestsAreReturnedInOrderAndCanBeReleasedTogether(t *testing.T) {
	r := setup(t)
	r.SetRule(Only(func(Command) Action { return Do(HoldAndCut) }, "append"))
	for i, word := range []string{"a", "b", "c", "d"} {
		w := r.dial(t)
		w.send(t, "APPEND k %s\r\n", word)
		r.await(t, func(c Counts) bool { return c.Held == i+1 })
	}
	first, err := r.NextHeld(bounded(t))
	require.NoError(t, err)
	require.Equal(t, "a", first.Words[2])
	require.Equal(t, 3, r.ReleaseHeld())
	require.Zero(t, r.ReleaseHeld())
	r.await(t, func(c Counts) bool { return c.Executed == 3 })
	require.Len(t, r.direct.Get(bounded(t), "k").Val(), 3)
	first.Release()
	require.NoError(t, first.Executed(bounded(t)))
	require.Equal(t, "a", r.direct.GetRange(bounded(t), "k", 3, 3).Val())
}

func TestAHeldRequestIsLostWithTheServerOrTheProxy(t *testing.T) {
	r := setup(t)
	byServer := late(t, r, r.dial(t), Hold)
	r.server.Kill()
	require.ErrorIs(t, byServer.Executed(bounded(t)), ErrLost)
	r.server.Restart()
	r.SetRule(func(Command) Action { return Do(HoldAndCut) })
	r.dial(t).send(t, "PING\r\n")
	byProxy, err := r.NextHeld(bounded(t))
	require.NoError(t, err)
	r.Close()
	require.ErrorIs(t, byProxy.Executed(bounded(t)), ErrLost)
	byProxy.Release() // does nothing any more
}

package faultproxy

import (
	"io"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each fault of a request or a reply, on a connection that asks before and after.

func TestADroppedReplyIsOfARequestThatWasExecuted(t *testing.T) {
	r := setup(t)
	r.SetRule(Only(Next(Do(DropReply)), "incr"))
	c := r.client(t)
	require.Error(t, c.Incr(bounded(t), "n").Err())
	r.has(t, "n", "1")
	require.EqualValues(t, 2, c.Incr(bounded(t), "n").Val(), "the next connection works")
	require.Equal(t, 1, r.Counts().DroppedReplies)
}

func TestASwallowedReplyLeavesTheConnectionHanging(t *testing.T) {
	r := setup(t)
	r.SetRule(Next(Action{}, Do(SwallowReply)))
	w := r.dial(t)
	w.send(t, "INCR n\r\nINCR n\r\n")
	w.says(t, ":1\r\n")
	r.await(t, func(c Counts) bool { return c.Hung == 1 })
	r.has(t, "n", "2")
	w.send(t, "INCR n\r\n")
	w.hangs(t)
	r.has(t, "n", "2")
	require.Equal(t, 1, r.Counts().DroppedReplies)

	r.SetRule(Only(Next(Do(SwallowReply)), "incr"))
	var wg sync.WaitGroup
	wg.Go(func() { assert.Error(t, r.client(t).Incr(bounded(t), "n").Err()) })
	r.await(t, func(c Counts) bool { return c.Hung == 2 })
	r.CutAll()
	wg.Wait()
	r.has(t, "n", "3")
}

func TestACutRequestDoesNotReachTheServer(t *testing.T) {
	r := setup(t)
	r.SetRule(Next(Action{}, Do(CutRequest)))
	w := r.dial(t)
	w.send(t, "INCR n\r\nINCR n\r\n")
	w.says(t, ":1\r\n") // what was asked before is answered
	w.isCut(t)
	r.await(t, func(c Counts) bool { return c.Open == 0 })
	r.has(t, "n", "1")
	require.Equal(t, 1, r.Counts().CutRequests)
	require.Equal(t, 1, r.Counts().Sent)
}

func TestAReplyCanBeCutInTheMiddle(t *testing.T) {
	r := setup(t)
	r.SetRule(Next(Action{}, Do(CutReply)))
	w := r.dial(t)
	w.send(t, "SET k 0123456789\r\nGET k\r\n")
	rest, err := io.ReadAll(w)
	require.NoError(t, err)
	require.Equal(t, "+OK\r\n$10\r\n012", string(rest))
	require.Equal(t, 1, r.Counts().CutReplies)

	r.SetRule(Only(Next(Do(CutReply)), "get"))
	require.Error(t, r.client(t).Get(bounded(t), "k").Err())
}

func TestAHungRequestDoesNotReachTheServer(t *testing.T) {
	r := setup(t)
	r.SetRule(Next(Action{}, Do(Hang)))
	w := r.dial(t)
	w.send(t, "INCR n\r\nINCR n\r\nINCR n\r\n")
	w.says(t, ":1\r\n")
	w.hangs(t)
	r.has(t, "n", "1")
	require.Equal(t, 1, r.Counts().Hung)
	r.CutAll()
	w.isCut(t)
}

func TestARequestSentTwiceIsExecutedTwiceAndAnsweredOnce(t *testing.T) {
	r := setup(t)
	r.SetRule(Only(Next(Action{}, Do(Twice)), "incr"))
	w := r.dial(t)
	w.send(t, "INCR n\r\nINCR n\r\nGET n\r\n")
	w.says(t, ":1\r\n", ":3\r\n", "$1\r\n3\r\n")
	got := r.Counts()
	require.Equal(t, 1, got.Doubled)
	require.Equal(t, 4, got.Sent)
	require.Equal(t, 3, got.Answered)
}

func TestAMadeUpAnswerStandsInItsPlace(t *testing.T) {
	r := setup(t)
	r.SetRule(Only(Next(Action{}, Answer("-BUSY wait\r\n")), "incr"))
	w := r.dial(t)
	w.send(t, "INCR n\r\nINCR n\r\nINCR n\r\n")
	w.says(t, ":1\r\n", "-BUSY wait\r\n", ":2\r\n")
	require.Equal(t, 1, r.Counts().MadeUp)
	r.SetRule(Only(Next(Answer("*2\r\n:1\r\n+x\r\n")), "get"))
	require.ErrorContains(t, r.client(t).Get(bounded(t), "n").Err(), "redis")
}

func TestARequestAndAReplyCanBeDelayed(t *testing.T) {
	r := setup(t)
	const d = 10 * time.Millisecond
	r.SetRule(Next(Action{DelayRequest: d}, Action{DelayReply: d}, Action{DelayReply: d, Fault: DropReply}))
	w := r.dial(t)
	for i, want := range []string{":1\r\n", ":2\r\n"} {
		sent := time.Now()
		w.send(t, "INCR n\r\n")
		w.says(t, want)
		require.GreaterOrEqual(t, time.Since(sent), d, "command %d", i)
	}
	w.send(t, "INCR n\r\n")
	w.isCut(t)
	r.has(t, "n", "3")
	require.Equal(t, 1, r.Counts().DelayedRequests)
	require.Equal(t, 2, r.Counts().DelayedReplies)
}

func TestAHeldReplyComesWhenItIsReleased(t *testing.T) {
	r := setup(t)
	r.SetRule(Next(Do(HoldReply)))
	w := r.dial(t)
	w.send(t, "INCR n\r\nINCR n\r\n")
	h, err := r.NextHeld(bounded(t))
	require.NoError(t, err)
	require.NoError(t, h.Executed(bounded(t)))
	r.await(t, func(c Counts) bool { return c.Sent == 2 })
	w.hangs(t)
	h.Release()
	w.says(t, ":1\r\n", ":2\r\n")
}

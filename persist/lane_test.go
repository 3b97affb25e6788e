package persist_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/internal/faultproxy"
	"github.com/orderwheel/orderwheel/persist"
)

// hold holds back the next script call. arrived returns when it is held.
func hold(t *testing.T, p *proxy) (arrived func() (release func())) {
	t.Helper()
	p.faults(faultproxy.Do(faultproxy.Hold))
	return func() func() {
		t.Helper()
		h, err := p.NextHeld(bounded(t))
		require.NoError(t, err)
		return h.Release
	}
}

// occupy has one of calls schedule "first", and holds its flush until release.
func (b bed) occupy(t *testing.T, p *proxy, calls *sync.WaitGroup) (release func()) {
	t.Helper()
	arrived := hold(t, p)
	calls.Go(func() { b.scheduled(t, past, "first") })
	return arrived()
}

// argv is what a script call has behind its keys.
func argv(call []string) []string {
	n, _ := strconv.Atoi(call[2])
	return call[3+n:]
}

// isFence tells whether a script call is an empty flush: a session and a number.
func isFence(call []string) bool {
	args := argv(call)
	return len(args) == 2 && len(args[0]) == len(rand.Text())
}

// What comes while a flush is on its way goes together with the next.
func TestCallersShareAFlush(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupMini(t))
	var calls sync.WaitGroup
	release := b.occupy(t, p, &calls)
	const n = 300
	for i, id := range ids("x", n) {
		calls.Go(func() {
			if i%2 == 0 {
				b.scheduled(t, past, id)
			} else {
				_, err := b.Cancel(bounded(t), []string{id})
				require.NoError(t, err)
			}
		})
	}
	b.waitForWaiting(t, n)
	release()
	calls.Wait()
	require.Len(t, p.seen(), 2)
	require.Len(t, b.stored(t).Due, 1+n/2)
}

// A flush has at most MaxBatch ids, and calls are not torn apart.
func TestAFlushHasAtMostMaxBatchIDs(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupMini(t))
	var calls sync.WaitGroup
	release := b.occupy(t, p, &calls)
	for i := range 5 {
		calls.Go(func() { b.scheduled(t, past, ids(fmt.Sprint(i), 400)...) })
	}
	b.waitForWaiting(t, 5*400)
	release()
	calls.Wait()
	require.Len(t, p.seen(), 1+3, "400 + 400, 400 + 400, 400")
	require.Len(t, b.stored(t).Due, 1+5*400)
}

// Calls of one id are executed in the order in which they were made, also when
// they share a flush.
func TestCallsOfOneIDKeepTheirOrder(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupMini(t))
	var calls sync.WaitGroup
	release := b.occupy(t, p, &calls)
	for i := range 50 {
		calls.Go(func() { b.scheduled(t, past+int64(i), "x") })
		b.waitForWaiting(t, 3*i+1)
		calls.Go(func() {
			got, err := b.Cancel(bounded(t), []string{"x"})
			require.NoError(t, err)
			require.Equal(t, persist.Cancelled, got[0])
		})
		b.waitForWaiting(t, 3*i+2)
		calls.Go(func() { b.scheduled(t, future+int64(i), "x") })
		b.waitForWaiting(t, 3*i+3)
	}
	release()
	calls.Wait()
	require.Equal(t, map[string]string{"first": strconv.Itoa(past), "x": strconv.Itoa(future + 49)}, b.stored(t).Due)
}

// Who waits for room, or for a flush, and goes, has not been sent.
func TestACallThatGoesWhileItWaitsIsNotSent(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupReal(t))
	var calls sync.WaitGroup
	release := b.occupy(t, p, &calls)
	for i := range persist.MaxWaiting / persist.MaxBatch {
		calls.Go(func() { b.scheduled(t, past, ids(fmt.Sprint(i), persist.MaxBatch)...) })
	}
	b.waitForWaiting(t, persist.MaxWaiting)
	ctx, cancel := context.WithCancel(t.Context())
	err := make(chan error, 1)
	go func() { err <- b.Schedule(ctx, []persist.Due{{ID: "no room", DueMS: past}}) }()
	cancel()
	for _, e := range []error{<-err, b.Schedule(ctx, []persist.Due{{ID: "ended", DueMS: past}})} {
		require.ErrorIs(t, e, context.Canceled)
		require.NotErrorIs(t, e, persist.ErrUnknownOutcome)
	}
	release()
	calls.Wait()
	require.Len(t, b.stored(t).Due, 1+persist.MaxWaiting)

	ctx, cancel = context.WithCancel(t.Context())
	release = b.occupy(t, p, &calls)
	go func() { err <- b.Schedule(ctx, []persist.Due{{ID: "waits", DueMS: past}}) }()
	b.waitForWaiting(t, 1)
	cancel()
	e := <-err
	require.ErrorIs(t, e, context.Canceled)
	require.NotErrorIs(t, e, persist.ErrUnknownOutcome)
	release()
	calls.Wait()
	require.NotContains(t, b.stored(t).Due, "waits")
}

// replay sends a script call that the proxy has seen once more, as a copy that
// comes late would.
func (b bed) replay(t *testing.T, call []string) (string, error) {
	t.Helper()
	args := make([]any, len(call))
	for i, a := range call {
		args[i] = a
	}
	v, err := b.client.Do(t.Context(), args...).Slice()
	if err != nil {
		return "", err
	}
	return v[3].(string), nil
}

func (p *proxy) lastCall() []string {
	calls := p.seen()
	return calls[len(calls)-1]
}

// A copy that comes before the next flush is answered as the first was; one that comes
// later is refused. Neither changes anything.
func TestACopyThatComesLateChangesNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		b, p := behindProxy(t, b)
		ops := map[string]func(){
			"schedule": func() { b.scheduled(t, past, "x") },
			"cancel":   func() { cancelX(t, b) },
			"claim":    func() { b.scheduled(t, past, "x"); b.claimed(t, "tok", time.Hour, "x") },
			"retry":    func() { retryX(t, b, persist.Retry{DueMS: past}) },
			"claim2":   func() { b.claimed(t, "tok", time.Hour, "x") },
			"ack":      func() { ackX(t, b, "tok") },
		}
		for _, name := range []string{"schedule", "cancel", "claim", "retry", "claim2", "ack"} {
			ops[name]()
			call := p.lastCall()
			after := b.stored(t)
			first := b.client.HGet(t.Context(), keySessions, argv(call)[0]).Val()
			b.waitFor(t, b.nowMS(t)+2) // so that an answer made anew is another
			again, err := b.replay(t, call)
			require.NoError(t, err, name)
			require.Equal(t, first, argv(call)[1]+" "+again, name)
			require.Equal(t, after, b.stored(t), name)

			// The lane goes on.
			switch name {
			case "schedule", "cancel":
				b.scheduled(t, future, "other")
				_, err = b.Cancel(t.Context(), []string{"other"})
			case "ack":
				_, err = b.Ack(t.Context(), []persist.Lease{{ID: "other", Token: "tok"}})
			default:
				_, err = b.Claim(t.Context(), "tok", []string{"other"}, time.Hour, 0)
			}
			require.NoError(t, err)
			require.Equal(t, after, b.stored(t))
			_, err = b.replay(t, call)
			require.ErrorContains(t, err, "STALE", name)
			require.Equal(t, after, b.stored(t), name)
		}
		b.requireEmpty(t)
	})
}

// Nobody waits any more, and nobody comes: an empty flush makes sure that the
// lost one stays lost.
func TestALostFlushThatNobodyWaitsForIsFencedOff(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupMini(t))
	ctx, cancel := context.WithCancel(t.Context())
	fenced := make(chan struct{})
	n := 0
	p.decide(func(faultproxy.Command) faultproxy.Action {
		if n++; n == 1 {
			cancel()
			return notSent
		}
		close(fenced)
		return pass
	})
	err := b.Schedule(ctx, []persist.Due{{ID: "x", DueMS: past}})
	require.ErrorIs(t, err, persist.ErrUnknownOutcome)
	<-fenced
	require.NoError(t, b.Close(bounded(t))) // until it is answered
	calls := p.seen()
	lost, fence := argv(calls[0]), argv(calls[1])
	require.Equal(t, []string{lost[0], "2"}, fence, "the same session, the next number, nothing else")
	_, err = b.replay(t, calls[0])
	require.ErrorContains(t, err, "STALE")
	require.Empty(t, b.stored(t).Due)
	require.True(t, b.client.HExists(t.Context(), keySessions, lost[0]).Val(), "kept: a copy may come late")
}

// A full Redis refuses the new work in a flush, and executes the rest of it.
func TestAFullRedisRefusesOnlyTheNewWorkOfAFlush(t *testing.T) {
	t.Parallel()
	b := setupReal(t)
	b.scheduled(t, past, "x")
	b, p := behindProxy(t, b)
	b.scheduled(t, past, "x")
	ctx, cancel := context.WithCancel(t.Context())
	b.Redis, _ = watch(t, p.client(t), cancel) // when it is refused, and not on its way
	do(t, b.client, "CONFIG", "SET", "maxmemory", "1")
	arrived := hold(t, p)
	var calls sync.WaitGroup
	calls.Go(func() { _, err := b.Cancel(bounded(t), []string{"nothing"}); require.NoError(t, err) })
	release := arrived()
	refused := make(chan error, 1)
	go func() { refused <- b.Schedule(ctx, []persist.Due{{ID: "new", DueMS: past}}) }()
	b.waitForWaiting(t, 1)
	calls.Go(func() { require.Equal(t, persist.Cancelled, cancelX(t, b)) })
	b.waitForWaiting(t, 2)
	release()
	calls.Wait()
	err := <-refused
	require.ErrorIs(t, err, persist.ErrDegraded)
	require.NotErrorIs(t, err, persist.ErrUnknownOutcome)
	require.NoError(t, b.Close(bounded(t)))
	require.Empty(t, b.stored(t).Due)
}

// A flush is lost on its way, and when it is sent again Redis is full. That it was not
// executed is found out, and what makes room goes on.
func TestAFullRedisAfterALostFlushRefusesOnlyTheNewWork(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]faultproxy.Action{"not executed": notSent, "executed": lostAnswer} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, p := behindProxy(t, setupReal(t))
			b.scheduled(t, past, "x", "y")
			n := 0
			p.decide(func(faultproxy.Command) faultproxy.Action {
				switch n++; n {
				case 1:
					return faultproxy.Do(faultproxy.Hold)
				case 2:
					return lost
				case 3:
					return errorReply("OOM command not allowed when used memory > 'maxmemory'.")
				}
				return pass
			})
			var calls sync.WaitGroup
			calls.Go(func() { b.scheduled(t, past, "y") })
			h, err := p.NextHeld(bounded(t))
			require.NoError(t, err)
			calls.Go(func() { b.scheduled(t, future, "new") })
			b.waitForWaiting(t, 1)
			calls.Go(func() { require.Equal(t, persist.Cancelled, cancelX(t, b)) })
			b.waitForWaiting(t, 2)
			h.Release()
			calls.Wait()
			require.Equal(t, map[string]string{"y": strconv.Itoa(past), "new": strconv.Itoa(future)}, b.stored(t).Due)
		})
	}
}

// One caller goes, the other of the same flush gets its answer.
func TestAFlushGoesOnWhileOneOfItsCallersWaits(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupMini(t))
	var calls sync.WaitGroup
	release := b.occupy(t, p, &calls)
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() { gone <- b.Schedule(ctx, []persist.Due{{ID: "goes", DueMS: past}}) }()
	b.waitForWaiting(t, 1)
	calls.Go(func() { b.scheduled(t, past, "stays") })
	b.waitForWaiting(t, 2)
	arrived := hold(t, p)
	release()
	release = arrived()
	cancel()
	require.ErrorIs(t, <-gone, persist.ErrUnknownOutcome)
	release()
	calls.Wait()
	require.Len(t, b.stored(t).Due, 3)
}

// The fence meets a Redis that is loading, and goes on; a write that comes meanwhile
// does not wait for it.
func TestAFenceIsRepeatedAndWaitsForNobody(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupMini(t))
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	p.decide(func(faultproxy.Command) faultproxy.Action {
		switch n++; n {
		case 1:
			cancel()
			return notSent
		case 2, 3:
			return errorReply("LOADING Redis is loading the dataset in memory")
		}
		return pass
	})
	require.ErrorIs(t, b.Schedule(ctx, []persist.Due{{ID: "x", DueMS: past}}), persist.ErrUnknownOutcome)
	require.NoError(t, b.Close(bounded(t)))
	calls := p.seen()
	require.Len(t, calls, 4)
	for _, call := range calls[1:] {
		require.True(t, isFence(call))
	}

	ctx, cancel = context.WithCancel(t.Context())
	n = 0
	hung := make(chan struct{})
	p.decide(func(c faultproxy.Command) faultproxy.Action {
		switch n++; n {
		case 1:
			cancel()
			return notSent
		case 2:
			close(hung)
			return noAnswer
		}
		return pass
	})
	require.ErrorIs(t, b.Schedule(ctx, []persist.Due{{ID: "x", DueMS: past}}), persist.ErrUnknownOutcome)
	<-hung
	b.scheduled(t, past, "y")
	require.Len(t, p.seen(), 4+3, "no more than the lost one, the fence that hangs, and the write")
}

// A write while a store is closed has a session that Close does not touch.
func TestCloseEndsASessionOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		b.scheduled(t, past, "x")
		old := b.client.HKeys(t.Context(), keySessions).Val()
		require.NoError(t, b.Close(t.Context()))
		b.scheduled(t, past, "x")
		require.NotContains(t, b.client.HKeys(t.Context(), keySessions).Val(), old[0])
	})
}

func TestCloseForgetsSessionsThatNothingCanDisturb(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		b.scheduled(t, past, "x")
		b.claimed(t, "tok", time.Hour, "x")
		require.EqualValues(t, 2, b.client.HLen(t.Context(), keySessions).Val())
		require.NoError(t, b.Close(t.Context()))
		require.NoError(t, b.Close(t.Context()))
		require.Zero(t, b.client.HLen(t.Context(), keySessions).Val())
		require.Equal(t, persist.Settled, ackX(t, b, "tok").State, "it can be used all the same")
		require.NoError(t, b.Close(t.Context()))
		require.Zero(t, b.client.DBSize(t.Context()).Val())
	})
}

// Sessions of stores that were not closed go after a day.
func TestCheckForgetsSessionsThatWereNotUsedForADay(t *testing.T) {
	t.Parallel()
	b := setupMini(t)
	now := time.Now()
	b.mini.SetTime(now)
	b.scheduled(t, past, "x")
	b.client.HSet(t.Context(), keySessions, "broken", "by hand")
	other := newStore(t, b.client)
	check := func(left int64) {
		t.Helper()
		_, err := other.Check(t.Context())
		require.NoError(t, err)
		require.Equal(t, left, b.client.HLen(t.Context(), keySessions).Val())
	}
	check(1)
	b.mini.SetTime(now.Add(24 * time.Hour))
	check(1)
	b.mini.SetTime(now.Add(24*time.Hour + time.Second))
	check(0)
	b.scheduled(t, past, "x") // and its store goes on
}

// A session that somebody removed, or that a wiped Redis has lost, begins anew.
func TestASessionOutlivesTheLossOfItsEntry(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		b.scheduled(t, past, "x")
		require.NoError(t, b.client.FlushAll(t.Context()).Err())
		b.scheduled(t, past, "y")
		require.NoError(t, b.client.HSet(t.Context(), keySessions, b.client.HKeys(t.Context(), keySessions).Val()[0], "broken").Err())
		b.scheduled(t, past, "z")
		require.Len(t, b.stored(t).Due, 2)
	})
}

// The lease of a claim whose answer was lost began with the first copy.
func TestAClaimWhoseAnswerIsLostTellsWhenItWasFirstSent(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupReal(t))
	b.scheduled(t, past, "x")
	var lost time.Time
	p.decide(func(faultproxy.Command) faultproxy.Action {
		if lost.IsZero() {
			lost = time.Now()
			return lostAnswer
		}
		return pass
	})
	claims, err := b.Claim(bounded(t), "tok", []string{"x"}, time.Hour, 0)
	require.NoError(t, err)
	p.decide(nil)
	require.True(t, claims.Sent.Before(lost))
	require.True(t, claims.Clock.Sent.After(lost))
	lease, err := b.client.ZScore(t.Context(), keyRunning, "x").Result()
	require.NoError(t, err)
	require.EqualValues(t, claims.NowMS+time.Hour.Milliseconds(), lease)
	require.LessOrEqual(t, claims.NowMS, claims.Clock.StoreUS/1000)
}

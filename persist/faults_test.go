package persist_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/internal/faultproxy"
	"github.com/orderwheel/orderwheel/persist"
	"github.com/stretchr/testify/require"
)

// Single faults, done to script calls by a proxy.

// Cases 35, 83, 84, 94 and their kind: a reply that says "not now", or a connection that
// breaks, is one retryable error, and the call goes on.
func TestACallOutlivesWhatCanBeRetried(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupMini(t))
	for _, f := range []faultproxy.Action{
		notSent,
		lostAnswer,
		errorReply("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."),
		errorReply("LOADING Redis is loading the dataset in memory"),
		errorReply("READONLY You can't write against a read only replica."),
		errorReply("CLUSTERDOWN The cluster is down"),
		errorReply("TRYAGAIN Multiple keys request during rehashing of slot"),
		errorReply("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."),
		errorReply("ERR max number of clients reached"),
		errorReply("OOM command not allowed when used memory > 'maxmemory'."),
		errorReply("MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk."),
		errorReply("NOREPLICAS Not enough good replicas to write."),
		errorReply("ERR Error running script (call to f_17): @user_script:9: @user_script: 9: -OOM command not allowed when used memory > 'maxmemory'. "),
	} {
		p.faults(f, f)
		require.NoError(t, b.Schedule(bounded(t), []persist.Due{{ID: "x", DueMS: past}}), "%+v", f)
		require.Equal(t, persist.Cancelled, cancelX(t, b), "%+v", f)
	}
}

// Case 58: the repeated write carries the due time that was asked for.
func TestAWriteThatIsRepeatedKeepsItsDueTime(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupMini(t))
	p.faults(errorReply("READONLY You can't write against a read only replica."))
	b.scheduled(t, future, "x")
	where, _ := left(t, b)
	require.Equal(t, "due 4000000000000", where)
}

// Case 78, 135: a server, or a proxy with its own prefix, that does not know the script gets it whole.
func TestAScriptThatIsNotKnownIsSentWhole(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupMini(t))
	require.NoError(t, b.client.ScriptFlush(t.Context()).Err())
	b.scheduled(t, past, "x")
	require.Equal(t, []string{"evalsha", "eval"}, p.names(), "the first call ever")
	p.faults(errorReply("ERR NOSCRIPT No matching script. Please use EVAL."))
	b.scheduled(t, past, "x")
	require.Equal(t, []string{"evalsha", "eval", "evalsha", "eval"}, p.names())
	b.scheduled(t, past, "x")
	require.Len(t, p.names(), 5, "now it is known")
	require.NoError(t, b.client.ScriptFlush(t.Context()).Err())
	b.scheduled(t, past, "x")
	require.Len(t, p.names(), 7)
}

func TestAFatalReplyIsReturnedAtOnce(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupMini(t))
	for _, msg := range []string{
		"NOAUTH Authentication required.",
		"WRONGPASS invalid username-password pair or user is disabled.",
		"NOPERM this user has no permissions to run the 'evalsha' command",
		"WRONGTYPE Operation against a key holding the wrong kind of value",
		"CROSSSLOT Keys in request don't hash to the same slot",
		"MOVED 1234 127.0.0.1:7001",
		"ERR unknown command 'evalsha', with args beginning with: ",
		"ERR something new",
	} {
		before := len(p.seen())
		p.faults(errorReply(msg))
		err := b.Schedule(t.Context(), []persist.Due{{ID: "x", DueMS: past}})
		require.ErrorIs(t, err, persist.ErrFatal, msg)
		require.ErrorContains(t, err, msg)
		require.NotErrorIs(t, err, persist.ErrUnknownOutcome, msg)
		require.NotErrorIs(t, err, persist.ErrRetryable, msg)
		require.Len(t, p.seen(), before+1, msg)
	}
	where, _ := left(t, b)
	require.Equal(t, "gone", where)
}

func TestAReplyOfTheWrongShapeIsAnErrorAndNoPanic(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupMini(t))
	ctx := t.Context()
	for _, reply := range []string{"+OK\r\n", "$-1\r\n", "*0\r\n", "*1\r\n+x\r\n", ":7\r\n", "*2\r\n*0\r\n*0\r\n", "*3\r\n:1\r\n:2\r\n:3\r\n", "*9\r\n:1\r\n:2\r\n:3\r\n:1\r\n:2\r\n:3\r\n:1\r\n:2\r\n:3\r\n"} {
		p.decide(func(faultproxy.Command) faultproxy.Action { return faultproxy.Answer(reply) })
		outcomes, err := b.Cancel(ctx, []string{"x", "y"})
		require.ErrorIs(t, err, persist.ErrFatal, reply)
		require.Empty(t, outcomes)
		_, err = b.Claim(ctx, "tok", []string{"x", "y", "z"}, time.Second, 0)
		require.ErrorIs(t, err, persist.ErrFatal, reply)
		settlements, err := b.Ack(ctx, []persist.Lease{{ID: "x"}, {ID: "y"}, {ID: "z"}})
		require.ErrorIs(t, err, persist.ErrFatal, reply)
		require.Empty(t, settlements)
		settlements, err = b.Bury(ctx, make([]persist.Burial, 3))
		require.ErrorIs(t, err, persist.ErrFatal, reply)
		require.Empty(t, settlements)
		settlements, err = b.Requeue(ctx, []string{"x", "y", "z"})
		require.ErrorIs(t, err, persist.ErrFatal, reply)
		require.Empty(t, settlements)
		renewed, err := b.Renew(ctx, make([]persist.Lease, 2), time.Second)
		require.ErrorIs(t, err, persist.ErrFatal, reply)
		require.Empty(t, renewed)
		discarded, err := b.Discard(ctx, []string{"x", "y"})
		require.ErrorIs(t, err, persist.ErrFatal, reply)
		require.Empty(t, discarded)
		records, err := b.Lookup(ctx, []string{"x"})
		require.ErrorIs(t, err, persist.ErrFatal, reply)
		require.Empty(t, records)
		_, err = b.Dead(ctx, persist.Cursor{}, 5)
		require.ErrorIs(t, err, persist.ErrFatal, reply)
	}
	for _, reply := range []string{"+OK\r\n", "$-1\r\n", "*0\r\n", "*1\r\n+x\r\n", "*2\r\n*0\r\n*0\r\n", "*4\r\n:1\r\n+2\r\n:3\r\n+x\r\n"} {
		p.decide(func(faultproxy.Command) faultproxy.Action { return faultproxy.Answer(reply) })
		_, err := b.Window(ctx, persist.Cursor{}, future, 5)
		require.ErrorIs(t, err, persist.ErrFatal, reply)
		_, err = b.Reap(ctx, 5)
		require.ErrorIs(t, err, persist.ErrFatal, reply)
		_, err = b.Now(ctx)
		require.ErrorIs(t, err, persist.ErrFatal, reply)
		_, err = b.Depth(ctx)
		require.ErrorIs(t, err, persist.ErrFatal, reply)
	}
}

func TestAClaimWhoseAnswerIsLostIsTheSameClaim(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupMini(t))
	b.scheduled(t, past, "x")
	p.faults(lostAnswer, lostAnswer)
	c := b.claimed(t, "tok", time.Hour, "x")[0]
	require.Equal(t, 1, c.Attempt)
	require.Equal(t, persist.Settled, ackX(t, b, "tok").State)
}

func TestAnAckWhoseAnswerIsLostIsSettled(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupMini(t))
	start(t, b, "run")
	p.faults(lostAnswer)
	require.Equal(t, persist.Settled, ackX(t, b, "tok").State)
	b.requireEmpty(t)

	start(t, b, "run+s")
	p.faults(lostAnswer)
	require.Equal(t, persist.Settlement{ID: "x", State: persist.Scheduled, DueMS: future}, ackX(t, b, "tok"))

	// The lease was over: it was refused, and is refused again.
	b.client.FlushAll(t.Context())
	overdue(t, b, func() {})
	_, err := b.Reap(t.Context(), 1)
	require.NoError(t, err)
	p.faults(lostAnswer)
	require.Equal(t, persist.Refused, ackX(t, b, "tok").State)
	b.claimed(t, "tok2", time.Hour, "x")
	p.faults(lostAnswer)
	require.Equal(t, persist.Refused, ackX(t, b, "tok").State)
}

func TestARetryWhoseAnswerIsLostIsScheduled(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupMini(t))
	start(t, b, "run")
	p.faults(lostAnswer)
	require.Equal(t, persist.Settlement{ID: "x", State: persist.Scheduled, DueMS: 7}, retryX(t, b, persist.Retry{DueMS: 7}))
	where, record := left(t, b)
	require.Equal(t, "due 7", where)
	require.Equal(t, "- 1 - 1000 -", record)

	b.client.FlushAll(t.Context())
	start(t, b, "run+c")
	p.faults(lostAnswer)
	require.Equal(t, persist.Settled, retryX(t, b, persist.Retry{DueMS: 7}).State)
	b.requireEmpty(t)
}

func TestACancelWhoseAnswerIsLostIsCancelled(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupMini(t))
	start(t, b, "due")
	p.faults(lostAnswer, lostAnswer)
	require.Equal(t, persist.Cancelled, cancelX(t, b))
	b.requireEmpty(t)
}

func TestTheSampleBracketsTheRoundTripThatWasAnswered(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupReal(t))
	var last time.Time // of the failed attempts
	n := 0
	p.decide(func(faultproxy.Command) faultproxy.Action {
		if n++; n < 4 {
			last = time.Now()
			return errorReply("LOADING Redis is loading the dataset in memory")
		}
		return pass
	})
	s, err := b.Now(bounded(t))
	require.NoError(t, err)
	p.decide(nil)
	require.True(t, s.Sent.After(last), "sent after the failed attempts")
	require.False(t, s.Received.Before(s.Sent))
	require.True(t, s.Sent.UnixMicro() <= s.StoreUS && s.StoreUS <= s.Received.UnixMicro(), "one host, one clock")
}

// The outcome of a write that was sent and not answered is open.
func TestAWriteCutOffByItsContextHasAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupMini(t))
	start(t, b, "run")
	reads := []string{"window", "dead", "lookup", "depth", "now"}
	for name, call := range everyCall(b.Redis) {
		ctx, cancel := context.WithCancel(t.Context())
		p.decide(func(c faultproxy.Command) faultproxy.Action {
			if isFence(c.Words) { // of the one before
				return pass
			}
			cancel()
			return noAnswer
		})
		err := call(ctx)
		require.ErrorIs(t, err, context.Canceled, name)
		require.ErrorIs(t, err, persist.ErrRetryable, name)
		if slices.Contains(reads, name) {
			require.NotErrorIs(t, err, persist.ErrUnknownOutcome, name)
		} else {
			require.ErrorIs(t, err, persist.ErrUnknownOutcome, name)
		}
		require.ErrorContains(t, err, "persist: "+name)
	}
}

func TestACallWhoseContextHasEndedIsNotSent(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupMini(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := b.Schedule(ctx, []persist.Due{{ID: "x", DueMS: past}})
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, persist.ErrUnknownOutcome)
	require.Empty(t, p.seen())
}

// An earlier attempt that may have been applied is not forgotten over a later one
// that certainly was not.
func TestAnUnknownOutcomeSticks(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupMini(t))
	p.faults(lostAnswer, errorReply("WRONGTYPE Operation against a key holding the wrong kind of value"))
	err := b.Schedule(t.Context(), []persist.Due{{ID: "x", DueMS: past}})
	require.ErrorIs(t, err, persist.ErrFatal)
	require.ErrorIs(t, err, persist.ErrUnknownOutcome)
}

func TestABatchThatBreaksOffSaysWhatWasDone(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupMini(t))
	all := ids("x", persist.MaxBatch+1)
	b.scheduled(t, past, all...)
	wrong := errorReply("WRONGTYPE Operation against a key holding the wrong kind of value")

	p.faults(pass, wrong)
	outcomes, err := b.Cancel(t.Context(), all)
	require.ErrorIs(t, err, persist.ErrFatal)
	require.NotErrorIs(t, err, persist.ErrUnknownOutcome, "the outcomes tell what is known")
	require.Equal(t, []int{persist.MaxBatch}, persist.Missing(err, len(all)))
	require.Len(t, outcomes, len(all))
	require.NotContains(t, outcomes[:persist.MaxBatch], persist.NotFound)

	dues := make([]persist.Due, len(all))
	for i, id := range all {
		dues[i] = persist.Due{ID: id, DueMS: past}
	}
	p.faults(pass, wrong)
	err = b.Schedule(t.Context(), dues)
	require.ErrorIs(t, err, persist.ErrFatal)
	require.NotErrorIs(t, err, persist.ErrUnknownOutcome, "the error tells what was written")
	require.Equal(t, []int{persist.MaxBatch}, persist.Missing(err, len(all)))
	require.ErrorContains(t, err, "1 of the tasks have no answer")
}

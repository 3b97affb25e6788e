package persist_test

import (
	"context"
	"fmt"
	"math/rand/v2"
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
	require.Equal(t, []string{"evalsha", "eval"}, p.seen(), "the first call ever")
	p.faults(errorReply("ERR NOSCRIPT No matching script. Please use EVAL."))
	b.scheduled(t, past, "x")
	require.Equal(t, []string{"evalsha", "eval", "evalsha", "eval"}, p.seen())
	b.scheduled(t, past, "x")
	require.Len(t, p.seen(), 5, "now it is known")
	require.NoError(t, b.client.ScriptFlush(t.Context()).Err())
	b.scheduled(t, past, "x")
	require.Len(t, p.seen(), 7)
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
		_, err = b.Claim(ctx, "tok", []string{"x", "y", "z"}, time.Second)
		require.ErrorIs(t, err, persist.ErrFatal, reply)
		settlements, err := b.Ack(ctx, []persist.Lease{{ID: "x"}, {ID: "y"}, {ID: "z"}})
		require.ErrorIs(t, err, persist.ErrFatal, reply)
		require.Empty(t, settlements)
	}
	for _, reply := range []string{"+OK\r\n", "$-1\r\n", "*0\r\n", "*1\r\n+x\r\n", "*2\r\n*0\r\n*0\r\n", "*4\r\n:1\r\n+2\r\n:3\r\n+x\r\n"} {
		p.decide(func(faultproxy.Command) faultproxy.Action { return faultproxy.Answer(reply) })
		_, err := b.Window(ctx, persist.Cursor{}, future, 5)
		require.ErrorIs(t, err, persist.ErrFatal, reply)
		_, err = b.Reap(ctx, 5)
		require.ErrorIs(t, err, persist.ErrFatal, reply)
		_, err = b.Now(ctx)
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

	// Not applied, and the lease is over: the repeated one is refused all the same.
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

func TestACancelWhoseAnswerIsLostSaysNotFound(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupMini(t))
	start(t, b, "due")
	p.faults(lostAnswer)
	require.Equal(t, persist.NotFound, cancelX(t, b))
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
	for name, call := range everyCall(b.Redis) {
		ctx, cancel := context.WithCancel(t.Context())
		p.decide(func(faultproxy.Command) faultproxy.Action { cancel(); return noAnswer })
		err := call(ctx)
		require.ErrorIs(t, err, context.Canceled, name)
		require.ErrorIs(t, err, persist.ErrRetryable, name)
		if name == "window" || name == "now" {
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
	require.Len(t, outcomes, persist.MaxBatch)

	dues := make([]persist.Due, len(all))
	for i, id := range all {
		dues[i] = persist.Due{ID: id, DueMS: past}
	}
	p.faults(pass, wrong)
	err = b.Schedule(t.Context(), dues)
	require.ErrorIs(t, err, persist.ErrFatal)
	require.ErrorIs(t, err, persist.ErrUnknownOutcome, "a part was written")
	require.ErrorContains(t, err, "1000 of 1001")
}

// Random operations whose answers are lost at random leave what they would have
// left, and say what they would have said, but for what the docs except.
func TestRandomLostAnswersChangeNothing(t *testing.T) {
	t.Parallel()
	for _, seed := range seeds(t, 3) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			b, p := behindProxy(t, setupMini(t))
			lossy(t, b, p, seed)
		})
	}
}

func lossy(t *testing.T, b bed, p *proxy, seed uint64) {
	faultRnd := rand.New(rand.NewPCG(seed, 1))
	lost := false
	w := newWalker(b, seed)
	for step := range 150 {
		w.tick(t)
		lost = false
		p.decide(func(faultproxy.Command) faultproxy.Action {
			if faultRnd.IntN(3) == 0 {
				lost = true
				return lostAnswer
			}
			return pass
		})
		op := w.lossyStep(t, func() bool { p.decide(nil); return lost })
		require.Equal(t, w.model.stored(), w.stored(t), "after step %d, %s", step, op)
	}
	w.drain(t)
}

// lossyStep makes one random operation on one id. lost tells, after it, whether an
// answer was lost.
func (w *walker) lossyStep(t *testing.T, lost func() bool) string {
	id := w.batch()[0]
	switch w.rnd.IntN(5) {
	case 0, 1:
		ms := w.dueMS()
		w.scheduled(t, ms, id)
		lost()
		w.model.schedule(id, ms)
		return fmt.Sprintf("schedule %q %d", id, ms)
	case 2:
		got, err := w.Cancel(t.Context(), []string{id})
		require.NoError(t, err)
		if want := w.model.cancel(id); got[0] != want {
			require.True(t, lost())
			require.Equal(t, persist.NotFound, got[0])
		}
		return fmt.Sprintf("cancel %q", id)
	case 3:
		w.tokens = append(w.tokens, fmt.Sprintf("tok%d", len(w.tokens)))
		token := w.tokens[len(w.tokens)-1]
		got, err := w.Claim(t.Context(), token, []string{id}, time.Hour)
		require.NoError(t, err)
		require.Equal(t, w.model.claim(id, token, got.NowMS, 3_600_000), got.Claims[0])
		return fmt.Sprintf("claim %q", id)
	default:
		l := w.lease(id)
		held := w.model.held(l)
		got, err := w.Ack(t.Context(), []persist.Lease{l})
		require.NoError(t, err)
		if want := w.model.ack(l); held || !lost() {
			require.Equal(t, want, got[0])
		} else if task := w.model[id]; task != nil && (task.running() || task.attempt > 0 || task.lost) {
			require.Equal(t, persist.Refused, got[0].State)
		}
		return fmt.Sprintf("ack %q", l)
	}
}

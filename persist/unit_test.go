package persist

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// replyError is an error reply of Redis.
type replyError string

func (e replyError) Error() string { return string(e) }
func (replyError) RedisError()     {}

func TestEveryErrorHasOneClass(t *testing.T) {
	t.Parallel()
	dial := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	read := &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}
	for _, line := range []struct {
		err   error
		class class
		maybe bool // it may have been executed
	}{
		{io.EOF, retryable, true},
		{io.ErrUnexpectedEOF, retryable, true},
		{net.ErrClosed, retryable, true},
		{syscall.ECONNRESET, retryable, true},
		{syscall.EPIPE, retryable, true},
		{read, retryable, true},
		{dial, retryable, false},
		{fmt.Errorf("pool: %w", dial), retryable, false},
		{&net.DNSError{Err: "no such host"}, retryable, true},
		{redis.ErrPoolTimeout, retryable, false},
		{redis.ErrPoolExhausted, retryable, false},
		{context.DeadlineExceeded, retryable, true},
		{errors.New("whatever the network invents"), retryable, true},
		{redis.ErrClosed, fatal, false},

		{replyError("LOADING Redis is loading the dataset in memory"), retryable, false},
		{replyError("READONLY You can't write against a read only replica."), retryable, false},
		{replyError("READONLY You can't write against a read only replica. script: 17, on @user_script:9."), retryable, false},
		{replyError("MASTERDOWN Link with MASTER is down"), retryable, false},
		{replyError("CLUSTERDOWN Hash slot not served"), retryable, false},
		{replyError("TRYAGAIN Multiple keys request during rehashing of slot"), retryable, false},
		{replyError("BUSY Redis is busy running a script."), retryable, false},
		{replyError("ERR max number of clients reached"), retryable, false},

		{replyError("OOM command not allowed when used memory > 'maxmemory'."), degraded, false},
		{replyError("MISCONF Redis is configured to save RDB snapshots"), degraded, false},
		{replyError("NOREPLICAS Not enough good replicas to write."), degraded, false},

		{replyError("NOAUTH Authentication required."), fatal, false},
		{replyError("WRONGPASS invalid username-password pair"), fatal, false},
		{replyError("NOPERM this user has no permissions"), fatal, false},
		{replyError("DENIED Redis is running in protected mode"), fatal, false},
		{replyError("WRONGTYPE Operation against a key holding the wrong kind of value"), fatal, false},
		{replyError("CROSSSLOT Keys in request don't hash to the same slot"), fatal, false},
		{replyError("ERR unknown command 'evalsha'"), fatal, false},
		{replyError("BUSYGROUP Consumer Group name already exists"), fatal, false},
		{replyError("ERR the LOADING zone"), fatal, false},
		{replyError(""), fatal, false},

		// Servers before 7.0, and miniredis, put the error of a call into a sentence.
		{replyError("ERR Error running script (call to f_17): @user_script:9: -OOM command not allowed when used memory > 'maxmemory'. "), degraded, false},
		{replyError("ERR Error running script (call to f_17): @user_script:9: @user_script: 9: -READONLY You can't write against a read only replica. "), retryable, false},
		{replyError("ERR Error running script (call to f_17): @user_script:9: @user_script: 9: -MISCONF Redis is configured to save RDB snapshots"), degraded, false},
		{replyError("ERR Error running script (call to f_17): @user_script:9: WRONGTYPE Operation against a key"), fatal, false},
		{replyError("ERR Error running script (call to f_17): @user_script:9: attempt to index a nil value"), fatal, false},
	} {
		require.Equal(t, line.class, classify(line.err, false), "%v", line.err)
		require.Equal(t, line.maybe, mayHaveRun(line.err), "%v", line.err)
		wrapped := fmt.Errorf("hook: %w", line.err)
		require.Equal(t, line.class, classify(wrapped, false), "%v", wrapped)
		require.Equal(t, line.maybe, mayHaveRun(wrapped), "%v", wrapped)
	}
}

func TestARedirectionIsFatalOnlyWhereNobodyFollowsIt(t *testing.T) {
	t.Parallel()
	for _, msg := range []string{"MOVED 1234 127.0.0.1:7001", "ASK 1234 127.0.0.1:7001"} {
		require.Equal(t, fatal, classify(replyError(msg), false))
		require.Equal(t, retryable, classify(replyError(msg), true))
	}
}

func TestACallErrorSaysAllItKnows(t *testing.T) {
	t.Parallel()
	err := error(&callError{
		op: "schedule", class: ErrRetryable, unknown: true, ctx: context.DeadlineExceeded, last: io.EOF, tries: 3, took: 250 * time.Millisecond,
	})
	require.Equal(t, "persist: schedule: outcome unknown: redis is away: context deadline exceeded after 3 tries in 250ms; last error: EOF", err.Error())
	for _, is := range []error{ErrRetryable, ErrUnknownOutcome, context.DeadlineExceeded, io.EOF} {
		require.ErrorIs(t, err, is)
	}
	require.NotErrorIs(t, err, ErrFatal)

	err = &callError{op: "ack", class: ErrFatal, last: replyError("NOPERM no")}
	require.Equal(t, "persist: ack: redis cannot do this: NOPERM no", err.Error())
	require.NotErrorIs(t, err, ErrUnknownOutcome)

	err = &callError{op: "now", ctx: context.Canceled}
	require.Equal(t, "persist: now: context canceled after 0 tries in 0s", err.Error())
	require.NotErrorIs(t, err, ErrRetryable)
}

func TestBackoffDoublesUpToItsCap(t *testing.T) {
	t.Parallel()
	b := backoff{base: 5 * time.Millisecond, cap: time.Second}
	for failed, most := range map[int]time.Duration{
		1: 5 * time.Millisecond, 2: 10 * time.Millisecond, 8: 640 * time.Millisecond, 9: time.Second, 40: time.Second, 1 << 40: time.Second,
	} {
		for range 100 {
			d := b.wait(failed)
			require.LessOrEqual(t, d, most)
			require.GreaterOrEqual(t, d, most/2)
		}
	}
}

func TestScriptsAreNamedByTheirSHA1(t *testing.T) {
	t.Parallel()
	require.Equal(t, redis.NewScript(flushScript.src).Hash(), flushScript.sha)
}

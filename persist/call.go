package persist

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// answer is the reply to one command and the round trip that brought it.
type answer struct {
	value          any
	sent, received time.Time
	err            error
	cut            bool // ctx ended first; err is nil and the command may still be at work
}

// once is a command that go-redis sends once and never again by itself: only this
// package repeats, so that it knows when a copy may have been applied and
// which round trip was answered.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

// run runs a script, again and again while that can help, until ctx ends. The
// error is a *callError.
func (r *Redis) run(ctx context.Context, s *script, args ...any) (reply, error) {
	resent := false // an earlier copy may have been applied
	a, err := r.repeat(ctx, s.name, s.writes, func() answer {
		again := resent // an attempt that is left alone reads it later
		a := r.try(ctx, func() answer { return r.eval(ctx, s, again, args) })
		resent = resent || a.cut || mayHaveRun(a.err)
		return a
	})
	if err != nil {
		return reply{}, err
	}
	return newReply(s, a)
}

// repeat calls attempt until it has an answer, a fatal error, or ctx has ended.
func (r *Redis) repeat(ctx context.Context, op string, writes bool, attempt func() answer) (answer, error) {
	watch := caller{presence: &r.away, op: op}
	start := time.Now()
	fail := &callError{op: op}
	for ctx.Err() == nil {
		attempted := time.Now()
		a := attempt()
		if a.err == nil && !a.cut {
			watch.answered(ctx, attempted)
			return a, nil
		}
		fail.tries++
		fail.unknown = fail.unknown || writes && (a.cut || mayHaveRun(a.err))
		if a.cut {
			fail.class = ErrRetryable
			break
		}
		if ctx.Err() != nil && errors.Is(a.err, ctx.Err()) && fail.last != nil {
			break // go-redis says no more than ctx does: what it said before is worth more
		}
		c := classify(a.err, r.isCluster())
		fail.class, fail.last = c.sentinel(), a.err
		if c == fatal {
			watch.gaveUp()
			return answer{}, fail
		}
		if ctx.Err() == nil && !isLocal(a.err) {
			watch.failed(ctx, attempted, c, a.err)
		}
		sleep(ctx, r.backoff.wait(fail.tries))
	}
	watch.gaveUp()
	fail.ctx, fail.took = ctx.Err(), time.Since(start)
	return answer{}, fail
}

// try makes one attempt and returns when ctx ends, whatever go-redis does. It
// notices the end of ctx late: a deadline only with ContextTimeoutEnabled, and a
// cancellation never while it waits for a reply. Then the attempt goes on alone until
// the client's ReadTimeout, and its answer is dropped together with its connection.
func (r *Redis) try(ctx context.Context, attempt func() answer) answer {
	if ctx.Done() == nil {
		return attempt()
	}
	done := make(chan answer, 1)
	go func() { done <- attempt() }()
	select {
	case a := <-done:
		return a
	case <-ctx.Done():
	}
	select {
	case a := <-done: // both at once: an answer is worth more
		return a
	default:
		return answer{cut: true}
	}
}

// eval sends a script by its SHA, and whole where the server does not know it.
func (r *Redis) eval(ctx context.Context, s *script, resent bool, args []any) answer {
	keys := r.keys.list()
	full := make([]any, 0, 4+len(keys)+len(args))
	full = append(full, "evalsha", s.sha, len(keys))
	full = append(full, keys...)
	if s.tellResent {
		full = append(full, flag(resent))
	}
	full = append(full, args...)
	a := send(ctx, r.client, full)
	if isNoScript(a.err) {
		full[0], full[1] = "eval", s.src
		a = send(ctx, r.client, full)
	}
	return a
}

func flag(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

// processor is what send needs of a client.
type processor interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// send makes one round trip.
func send(ctx context.Context, client processor, args []any) answer {
	cmd := once{redis.NewCmd(ctx, args...)}
	var a answer
	a.sent = time.Now()
	a.err = client.Process(ctx, cmd)
	a.received = time.Now()
	if a.err == nil {
		a.value, a.err = cmd.Result()
	}
	return a
}

// sleep waits for d, or less if ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func (r *Redis) isCluster() bool {
	_, ok := r.client.(*redis.ClusterClient)
	return ok
}

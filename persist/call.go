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
	cut            bool // ctx ended first, and err is nil
	ran            bool // there is no answer, but the command may have been executed, or may still be

	// Of a flush.
	clock    Sample
	judgedMS int64     // the store's clock that judged it
	first    time.Time // when it was sent for the first time

	shortfall error // it is stored, but on too few replicas
}

// once is a command that go-redis sends once and never again by itself: only this
// package repeats, so that it knows when a copy may have been applied and
// which round trip was answered.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

// run runs a script, again and again while that can help, until ctx ends. The
// error is a *callError.
func (s *shard) run(ctx context.Context, sc *script, args ...any) (reply, error) {
	a, err := s.repeat(ctx, sc.name, sc.writes, func() answer {
		return s.try(ctx, func() answer { return s.eval(ctx, sc, args) })
	})
	if err != nil {
		return reply{}, err
	}
	return newReply(sc, a)
}

// write sends w with the next flush of its lane, and again where Redis refused it,
// until ctx ends. The error is a *callError.
func (s *shard) write(ctx context.Context, w write) (reply, error) {
	var a *answer
	_, err := s.repeat(ctx, w.op, true, func() answer {
		again := w
		a = s.lanes[w.lane].do(ctx, &again)
		return *a
	})
	if err != nil {
		return reply{}, err
	}
	text, _ := a.value.(words)
	if a.shortfall != nil {
		mine := *a // others have the same flush
		mine.shortfall = &callError{op: w.op, shard: s.name, last: a.shortfall}
		a = &mine
	}
	return reply{op: w.op, words: text, flush: a}, nil
}

// repeat calls attempt until it has an answer, a fatal error, or ctx has ended.
func (s *shard) repeat(ctx context.Context, op string, writes bool, attempt func() answer) (answer, error) {
	watch := caller{presence: &s.away, op: op}
	start := time.Now()
	var fail *callError // nil: no attempt has failed
	for ctx.Err() == nil {
		attempted := time.Now()
		a := attempt()
		if a.err == nil && !a.cut {
			watch.answered(ctx, attempted)
			return a, nil
		}
		if fail == nil {
			fail = &callError{op: op, shard: s.name}
		}
		fail.tries++
		fail.unknown = fail.unknown || writes && a.ran
		if a.cut {
			fail.class = ErrRetryable
			break
		}
		if ctx.Err() != nil && errors.Is(a.err, ctx.Err()) && fail.last != nil {
			break // go-redis says no more than ctx does: what it said before is worth more
		}
		c := classify(a.err, s.cluster)
		fail.class, fail.last = c.sentinel(), a.err
		if c == fatal {
			watch.gaveUp()
			return answer{}, fail
		}
		if ctx.Err() == nil && !isLocal(a.err) {
			watch.failed(ctx, attempted, c, a.err)
		}
		sleep(ctx, s.backoff.wait(fail.tries))
	}
	watch.gaveUp()
	if fail == nil {
		fail = &callError{op: op, shard: s.name}
	}
	fail.ctx, fail.took = ctx.Err(), time.Since(start)
	return answer{}, fail
}

// try makes one attempt and returns when ctx ends, whatever go-redis does. It
// notices the end of ctx late: a deadline only with ContextTimeoutEnabled, and a
// cancellation never while it waits for a reply. Then the attempt goes on alone until
// the client's ReadTimeout, and its answer is dropped together with its connection.
func (s *shard) try(ctx context.Context, attempt func() answer) answer {
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
		return answer{cut: true, ran: true}
	}
}

// eval sends a script by its SHA, and whole where the server does not know it.
func (s *shard) eval(ctx context.Context, sc *script, args []any) answer {
	a := s.evalOn(ctx, s.client, sc, args)
	s.follow(ctx, a.err)
	return a
}

func (s *shard) evalOn(ctx context.Context, client processor, sc *script, args []any) answer {
	full := s.call("evalsha", sc.sha, args)
	a := send(ctx, client, full)
	if isNoScript(a.err) {
		full[0], full[1] = "eval", sc.src
		a = send(ctx, client, full)
	}
	return a
}

// call is the command that calls a script.
func (s *shard) call(command, script string, args []any) []any {
	keys := s.keys.list()
	full := make([]any, 0, 3+len(keys)+len(args))
	full = append(full, command, script, len(keys))
	full = append(full, keys...)
	return append(full, args...)
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
	a.ran = mayHaveRun(a.err)
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

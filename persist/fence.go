package persist

import (
	"context"
	"strconv"
	"time"
)

// fenceTimeout bounds the flush that nobody waits for.
const fenceTimeout = time.Second

// fence makes sure that a flush of which nobody knows whether it was executed is
// not executed from now on: Redis refuses it once it has seen a later number. An
// empty flush is sent until it is answered, for a while: when Redis is away for
// longer, the next write has to do. One that comes meanwhile does it at once.
func (l *lane) fence() {
	ctx, cancel := context.WithTimeout(context.Background(), fenceTimeout)
	defer cancel()
	if !l.setFencing(cancel) {
		return
	}
	for tries := 1; l.owed && ctx.Err() == nil; tries++ {
		if l.inquire(ctx, nil, false); l.owed {
			sleep(ctx, l.shard.backoff.wait(tries))
		}
	}
	l.setFencing(nil)
	if ctx.Err() == context.DeadlineExceeded {
		l.owed = false
	}
}

// setFencing says how to end the fence under way; false if something waits.
func (l *lane) setFencing(cancel func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if cancel != nil && len(l.mu.waiting) > 0 {
		return false
	}
	l.mu.fencing = cancel
	return true
}

// ask finds out whether a flush was executed that Redis refuses now: it is asked,
// with the next number, for what it had before. So what makes room need not wait
// until there is room. ok: a is the answer to the flush.
func (l *lane) ask(ctx context.Context, number uint64, refusal answer) (a answer, ok bool) {
	a = l.inquire(ctx, []any{"?"}, l.durable)
	text, answered := a.value.(string)
	if !answered {
		return a, a.cut
	}
	found, rest := cutWords(text, 1)
	if found != strconv.FormatUint(number, 10) {
		refusal.ran = false // it never was, and will not be
		return refusal, true
	}
	a.first = refusal.first
	return read(a, rest), true
}

// inquire sends a flush that writes nothing but its number.
func (l *lane) inquire(ctx context.Context, args []any, durable bool) answer {
	a, _ := l.transmitArgs(ctx, args, false, durable, func(attempt func() answer) (answer, bool) {
		return l.shard.try(ctx, attempt), true
	})
	return a
}

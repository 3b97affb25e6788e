package executor

import (
	"context"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/orderwheel/orderwheel/persist"
)

// outcome is what a run came to.
type outcome struct {
	kind   outcomeKind
	atMS   int64         // retryLater, postpone, handBack of what has no answer: when to come again
	wait   time.Duration // retryLater: how long that is
	err    error         // bury: the last error
	reason string        // bury: its text
}

type outcomeKind int

const (
	done       outcomeKind = iota // ack
	retryLater                    // the attempt failed
	postpone                      // RetryAt: the attempt does not count
	bury                          // Permanent, or the last attempt failed
	handBack                      // the handler was not called: at once, not counted
	cutOff                        // Stop did not wait for the handler: at once, and it may still be at work
)

// work is what a worker of the pool does: c, and then what waits for a worker.
func (e *Executor) work(c *call) {
	for c != nil {
		c = e.run(c)
	}
}

// run is one call of the handler. Whatever the handler does, each task comes to an outcome.
func (e *Executor) run(c *call) (next *call) {
	outcomes, goesOn := sameFor(c, outcome{kind: handBack}), false
	defer func() { next = e.finish(c, outcomes, goesOn) }()
	ctx, ok := e.begin(c)
	defer ctx.end(nil)
	if ok {
		e.countLateness(c)
		e.attempt(ctx, c, outcomes)
	}
	goesOn = true // else the handler has ended its goroutine
	return nil
}

// attempt calls the handler, and fills in what came of it, whatever the handler does.
func (e *Executor) attempt(ctx context.Context, c *call, outcomes []outcome) {
	errs, returned := []error(nil), false
	defer func() {
		if !returned {
			errs = sameFor[error](c, &PanicError{Value: recover(), Stack: debug.Stack()})
		}
		for i, t := range c.tasks { // should an error's own code end the goroutine
			outcomes[i] = e.again(t)
		}
		for i, t := range c.tasks {
			outcomes[i] = e.judge(ctx, t, errs[i])
		}
	}()
	errs = e.handle(ctx, c)
	returned = true
}

func (e *Executor) countLateness(c *call) {
	nowMS := e.cfg.NowMS()
	for _, t := range c.tasks {
		switch {
		case t.attempt > 1:
		case t.begunMS != 0: // it ran without a claim then
			e.stats.late.add(t.begunMS - t.firstMS)
		default:
			e.stats.late.add(nowMS - t.firstMS)
		}
	}
}

// judge turns a handler's answer into what the store is told.
func (e *Executor) judge(ctx context.Context, t *task, err error) outcome {
	if err == nil {
		return outcome{kind: done}
	}
	v := readError(err)
	if v.notYet {
		atMS := ceilMS(v.at)
		if atMS <= t.nowMS { // "not yet" at a time that had passed when it was claimed
			atMS = e.cfg.NowMS() + e.cfg.Backoff.Base.Milliseconds()
		}
		return outcome{kind: postpone, atMS: atMS}
	}
	e.countFailure(ctx, v.err)
	if v.permanent || e.cfg.Backoff.isLast(t.attempt) {
		return outcome{kind: bury, err: v.err, reason: reasonOf(v.err)}
	}
	o := e.again(t)
	attrs := []slog.Attr{slog.String("id", t.id), slog.Int("attempt", t.attempt), slog.Duration("wait", o.wait), slog.Any("error", v.err)}
	e.cfg.Logger.LogAttrs(context.Background(), slog.LevelWarn, "retried", append(attrs, stackOf(v.err)...)...)
	return o
}

// again is the outcome of an attempt that failed and was not the last.
func (e *Executor) again(t *task) outcome {
	wait := e.cfg.Backoff.After(t.attempt)
	return outcome{kind: retryLater, wait: wait, atMS: e.cfg.NowMS() + wait.Milliseconds()}
}

// countFailure counts a failed attempt by its reason. An error after the end of the
// handler's ctx is a timeout, unless it was Stop that ended it.
func (e *Executor) countFailure(ctx context.Context, err error) {
	e.stats.failed.Add(1)
	if _, ok := err.(*PanicError); ok {
		e.stats.panicked.Add(1)
	} else if ctx.Err() != nil && e.ctx.Err() == nil {
		e.stats.timedOut.Add(1)
	}
}

// stackOf is the stack of a panic, for the log.
func stackOf(err error) []slog.Attr {
	if p, ok := err.(*PanicError); ok {
		return []slog.Attr{slog.String("stack", string(p.Stack))}
	}
	return nil
}

// ceilMS rounds up, so that nothing is early. A time that the store cannot hold
// is brought within its limits.
func ceilMS(t time.Time) int64 {
	switch {
	case t.Before(time.UnixMilli(0)):
		return 0
	case t.After(time.UnixMilli(persist.MaxDueMS)):
		return persist.MaxDueMS
	}
	return min(t.Add(time.Millisecond-time.Nanosecond).UnixMilli(), persist.MaxDueMS)
}

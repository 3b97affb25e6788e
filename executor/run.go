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
	kind outcomeKind
	atMS int64 // retryLater, postpone: when to come again
}

type outcomeKind int

const (
	done       outcomeKind = iota // ack
	retryLater                    // the attempt failed
	postpone                      // RetryAt: the attempt does not count
	handBack                      // the handler was not called: at once, not counted
	cutOff                        // Stop did not wait for the handler: at once, and it may still be at work
)

// run is one attempt, on a worker of the pool. It returns normally whatever the
// handler does.
func (e *Executor) run(t *task) {
	if !time.Now().Before(t.lease) {
		// The claim's answer, or this process, was held up for so long that the
		// task may be another's by now, or cancelled.
		e.finish(t, outcome{kind: handBack})
		return
	}
	deadline := t.lease
	if d := time.Now().Add(e.cfg.HandlerTimeout); d.Before(deadline) {
		deadline = d
	}
	ctx, cancel := context.WithDeadline(e.ctx, deadline)
	defer cancel()
	if t.attempt == 1 {
		begun := t.begunMS // it ran without a claim then
		if begun == 0 {
			begun = e.cfg.NowMS()
		}
		e.stats.late.add(begun - t.firstMS)
	}
	var err error
	returned := false
	defer func() {
		if !returned {
			err = &PanicError{Value: recover(), Stack: debug.Stack()}
		}
		e.finish(t, e.judge(t, err))
	}()
	err = e.cfg.Handler(ctx, Task{
		ID:      t.id,
		Due:     time.UnixMilli(t.firstMS),
		Attempt: t.attempt,
		Now:     time.UnixMilli(t.nowMS),
		Source:  t.source,
	})
	returned = true
}

// judge turns a handler's answer into what the store is told.
func (e *Executor) judge(t *task, err error) outcome {
	if err == nil {
		return outcome{kind: done}
	}
	at, notYet, err := readRetryAt(err)
	if notYet {
		atMS := ceilMS(at)
		if atMS <= t.nowMS { // "not yet" at a time that had passed when it was claimed
			atMS = e.cfg.NowMS() + e.cfg.Backoff.Base.Milliseconds()
		}
		return outcome{kind: postpone, atMS: atMS}
	}
	e.stats.failed.Add(1)
	wait := e.cfg.Backoff.After(t.attempt)
	attrs := []slog.Attr{slog.String("id", t.id), slog.Int("attempt", t.attempt), slog.Duration("wait", wait), slog.Any("error", err)}
	if p, ok := err.(*PanicError); ok {
		e.stats.panicked.Add(1)
		attrs = append(attrs, slog.String("stack", string(p.Stack)))
	}
	e.cfg.Logger.LogAttrs(context.Background(), slog.LevelWarn, "failed", attrs...)
	return outcome{kind: retryLater, atMS: e.cfg.NowMS() + wait.Milliseconds()}
}

// finish passes a task from its worker to the settler.
func (e *Executor) finish(t *task, o outcome) {
	e.mu.Lock()
	e.mu.running--
	if t.abandoned {
		e.releaseLocked(t)
		e.idleLocked()
	} else {
		t.stage, t.outcome = finished, o
		e.mu.finished = append(e.mu.finished, t)
		e.mu.unsettled++
	}
	e.mu.Unlock()
	wake(e.settleWake)
	wake(e.claimWake)
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

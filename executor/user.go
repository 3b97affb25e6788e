package executor

import "github.com/orderwheel/orderwheel/internal/arming"

// The user's calls. Each is begun in Config.Calls before the store is asked, and ended
// by one of these when the store has answered; they tell the board as well. While a
// call on an id is open no run of that id without a claim begins.

// UserScheduled ends a call that has made id due at dueMS, and arms it. Without a claim it
// does not run before. A run without a claim that is at work comes not again by itself.
func (e *Executor) UserScheduled(id string, dueMS int64) { e.userAnswered(id, dueMS) }

// UserCancelled ends a call that has taken id back, and disarms it. It reports whether a run
// without a claim, of which the store knows nothing, has begun here: then the id has started.
func (e *Executor) UserCancelled(id string) (started bool) { return e.userAnswered(id, never) }

// UserFailed ends a call without an answer. unknown: it may have been executed, or may
// still be. Then id does not run without a claim until a later call on it is answered,
// or its claim is.
func (e *Executor) UserFailed(id string, unknown bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	how := arming.Refused
	if unknown {
		how = arming.Unknown
	}
	e.cfg.Calls.End(id, how)
	if t := e.mu.held[id]; t != nil {
		e.considerLocked(t)
	}
}

func (e *Executor) userAnswered(id string, dueMS int64) (started bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cfg.Calls.End(id, arming.Answered)
	if dueMS == never {
		e.cfg.Board.UserCancelled(id)
	} else {
		e.cfg.Board.UserScheduled(id, dueMS)
	}
	t := e.mu.held[id]
	if t == nil {
		return false
	}
	t.next = nil // what the wheel fired was an answer to an older question
	t.userSays(dueMS)
	if l := t.lone; l != nil {
		started = l.ran
		l.voided, l.ran = l.running, l.running
		if !l.running {
			l.tries, l.begunMS = 0, 0
		}
	}
	e.considerLocked(t)
	return started
}

// userSays notes when t is due, or never, as a user's call was answered.
func (t *task) userSays(dueMS int64) {
	t.notBeforeMS = dueMS
	if dueMS != never {
		t.dueMS = dueMS
	}
}

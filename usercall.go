package orderwheel

import (
	"errors"

	"github.com/orderwheel/orderwheel/internal/arming"
	"github.com/orderwheel/orderwheel/persist"
)

// A user's call on an id tells the run that it is open, from before the store is asked
// until it has ended one way or the other: meanwhile the id does not begin to run
// without a claim, and afterwards only as the call's answer allows. Each is begun by
// e.calls.Begin, under the id's lock, and ended by exactly one of these.

// userScheduled ends a call that has made id due at dueMS, and arms it.
func (e *Engine) userScheduled(id string, dueMS int64) {
	r := e.cur.Load() // not the one before: Stop and Start may have come between
	if r == nil {
		e.calls.End(id, arming.Answered)
		return
	}
	r.exec.UserScheduled(id, dueMS)
}

// userCancelled ends a call that has taken id back, and disarms it. It reports whether a
// run without a claim has begun here, of which the store knows nothing.
func (e *Engine) userCancelled(id string) (started bool) {
	r := e.cur.Load()
	if r == nil {
		e.calls.End(id, arming.Answered)
		return false
	}
	return r.exec.UserCancelled(id)
}

// userFailed ends a call that ended in err, without an answer.
func (e *Engine) userFailed(id string, err error) {
	unknown := errors.Is(err, persist.ErrUnknownOutcome)
	switch r := e.cur.Load(); {
	case r != nil:
		r.exec.UserFailed(id, unknown)
	case unknown:
		e.calls.End(id, arming.Unknown)
	default:
		e.calls.End(id, arming.Refused)
	}
}

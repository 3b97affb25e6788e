package executor

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/orderwheel/orderwheel/persist"
)

// ErrLeaseLost is the cause of the end of a handler's ctx (see context.Cause) when
// the store has refused to renew its lease, or has not been heard of until the lease
// was over: the task may run elsewhere by now.
var ErrLeaseLost = errors.New("executor: the lease is lost")

// RetryAt makes the error by which a handler says "not yet": the task comes
// back at t, and the attempt does not count. It is no failure: an order that
// was extended answers its close this way. A t that had passed when the task
// was claimed, of a clock that is slow or of a time cut off to seconds, becomes
// Backoff.Base from now.
func RetryAt(t time.Time) error { return &retryAtError{t} }

type retryAtError struct{ at time.Time }

func (e *retryAtError) Error() string {
	return fmt.Sprintf("not yet: again at %s", e.at.Format(time.RFC3339Nano))
}

// Permanent makes the error by which a handler says that trying again is of no
// use: the task is buried at once, whatever its attempt. It wraps err; of nil it
// is nil. Where an error is both, it wins over RetryAt.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// verdict is what a handler's error says.
type verdict struct {
	err       error     // what came of it: the handler's own, or a panic while it was looked into
	permanent bool      // do not try again
	notYet    bool      // try again at that time, uncounted
	at        time.Time // notYet
}

// readError finds a Permanent or a RetryAt in err's chain. Looking for it calls
// the handler's code, for example Unwrap of a nil *fs.PathError, which panics:
// then that panic is the error.
func readError(err error) (v verdict) {
	defer func() {
		if p := recover(); p != nil {
			v = verdict{err: &PanicError{Value: p, Stack: debug.Stack()}}
		}
	}()
	v.err = err
	if p := (*permanentError)(nil); errors.As(err, &p) {
		v.permanent = true
	} else if r := (*retryAtError)(nil); errors.As(err, &r) {
		v.notYet, v.at = true, r.at
	}
	return v
}

// reasonOf is err's text as a burial keeps it: valid UTF-8, at most
// persist.MaxReasonLen bytes, never empty. Error is the handler's code and may panic.
func reasonOf(err error) (reason string) {
	defer func() {
		if recover() != nil {
			reason = fmt.Sprintf("%T, of which Error panics", err)
		}
	}()
	text := err.Error()
	if text == "" {
		return fmt.Sprintf("%T without a text", err)
	}
	return cutText(text, persist.MaxReasonLen)
}

// cutText is the first part of text in whole runes, at most n bytes. What is not
// UTF-8 becomes U+FFFD.
func cutText(text string, n int) string {
	text = strings.ToValidUTF8(text[:min(len(text), n+utf8.UTFMax)], "\uFFFD")
	if len(text) <= n {
		return text
	}
	for !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// PanicError is what a handler's panic becomes. It is retried like any other error.
type PanicError struct {
	Value any    // what was passed to panic; nil where the handler called runtime.Goexit
	Stack []byte // as runtime/debug.Stack gives it
}

func (e *PanicError) Error() string {
	if e.Value == nil {
		return "handler ended its goroutine (runtime.Goexit)"
	}
	return fmt.Sprintf("handler panicked: %v", e.Value)
}

// Unwrap gives the panic's value where that was an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

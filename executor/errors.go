package executor

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

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

// readRetryAt finds a RetryAt in err's chain. Looking for it calls the
// handler's code, for example Unwrap of a nil *fs.PathError, which panics: then
// that panic is the error.
func readRetryAt(err error) (at time.Time, ok bool, _ error) {
	var panicked error
	func() {
		defer func() {
			if v := recover(); v != nil {
				panicked = &PanicError{Value: v, Stack: debug.Stack()}
			}
		}()
		var r *retryAtError
		if ok = errors.As(err, &r); ok {
			at = r.at
		}
	}()
	if panicked != nil {
		return time.Time{}, false, panicked
	}
	return at, ok, err
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

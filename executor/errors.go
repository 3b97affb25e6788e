package executor

import (
	"errors"
	"fmt"
	"time"
)

// RetryAt makes the error by which a handler says "not yet": the task comes back at
// t, and the attempt does not count. It is no failure: an order that was extended
// answers its close this way.
func RetryAt(t time.Time) error { return &retryAtError{t} }

type retryAtError struct{ at time.Time }

func (e *retryAtError) Error() string {
	return fmt.Sprintf("not yet: again at %s", e.at.Format(time.RFC3339Nano))
}

// asRetryAt finds a RetryAt in err's chain.
func asRetryAt(err error) (time.Time, bool) {
	var r *retryAtError
	if errors.As(err, &r) {
		return r.at, true
	}
	return time.Time{}, false
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

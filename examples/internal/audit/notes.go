package audit

import (
	"context"
	"fmt"
	"time"

	"github.com/orderwheel/orderwheel/executor"
)

// Notes is what one process writes down for the audit, in a file of its own. A
// process that only works needs no more of this package: it need not wait for
// the database. Its methods may be called by many goroutines at once.
//
// A note that cannot be written stops nothing: Close returns the error, and so
// does the Report of an Audit.
type Notes struct{ log *callLog }

// OpenNotes makes the file of this process in dir. Close it when no handler runs
// any more.
func OpenNotes(dir string) (*Notes, error) {
	log, err := newCallLog(dir)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return &Notes{log: log}, nil
}

// Wrap returns a handler that notes each call of h.
func (n *Notes) Wrap(h executor.Handler) executor.Handler {
	return func(ctx context.Context, t executor.Task) error {
		number := n.log.enter(time.Now(), t)
		err := h(ctx, t)
		n.log.leave(time.Now(), number, err)
		return err
	}
}

// WrapBatch is Wrap for a handler of batches: each task is noted as a call.
func (n *Notes) WrapBatch(h executor.BatchHandler) executor.BatchHandler {
	return func(ctx context.Context, tasks []executor.Task) []error {
		numbers := make([]uint64, len(tasks))
		for i, t := range tasks {
			numbers[i] = n.log.enter(time.Now(), t)
		}
		errs := h(ctx, tasks)
		for i, number := range numbers {
			n.log.leave(time.Now(), number, errs[i])
		}
		return errs
	}
}

// Moved notes that the engine's Schedule, called at begun, has returned nil just
// now for an order whose expire_at was moved to a later one. What is claimed
// from now on before that is early.
func (n *Notes) Moved(begun time.Time, orderNo string, expireAt time.Time) {
	n.log.moved(begun, time.Now(), orderNo, expireAt)
}

// RedisKilled notes that Redis has been killed just now, and may have forgotten
// what it had answered lately.
func (n *Notes) RedisKilled() { n.log.killed(time.Now()) }

// Close closes the file.
func (n *Notes) Close() error {
	err := n.log.err()
	if closeErr := n.log.close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("audit: the notes: %w", err)
	}
	return nil
}

package orderwheel

import (
	"context"
	"errors"
	"fmt"

	"github.com/orderwheel/orderwheel/persist"
)

// What an operator asks and does. All of it works on an engine that does not run,
// too: it asks Redis alone, but for Requeue, which also arms what it made due.

// Lookup reads all that Redis knows of id: where it stands (nowhere, due, running or
// dead), since when, and which attempt it is. Times are Unix milliseconds.
// persist.ErrInvalid is returned for an id that cannot be.
func (e *Engine) Lookup(ctx context.Context, id string) (persist.Record, error) {
	records, err := e.store.Lookup(ctx, []string{id})
	if err != nil {
		return persist.Record{}, fmt.Errorf("orderwheel: lookup %q: %w", id, err)
	}
	return records[0], nil
}

// Dead reads the dead tasks, the oldest burial first: those after the cursor, at most
// limit. The zero Cursor starts at the beginning, Next of a page goes on, and More says
// whether to. A task is dead when its last attempt failed, or its handler returned
// executor.Permanent; it stays until it is requeued, discarded or scheduled again.
func (e *Engine) Dead(ctx context.Context, after persist.Cursor, limit int) (persist.DeadPage, error) {
	page, err := e.store.Dead(ctx, after, limit)
	if err != nil {
		return page, fmt.Errorf("orderwheel: dead: %w", err)
	}
	return page, nil
}

// Discard forgets a dead task. False: it is not dead, and nothing was changed; after
// persist.ErrUnknownOutcome false may also mean that the call before did it.
func (e *Engine) Discard(ctx context.Context, id string) (bool, error) {
	answers, err := e.store.Discard(ctx, []string{id})
	if err != nil {
		return false, fmt.Errorf("orderwheel: discard %q: %w", id, err)
	}
	return answers[0], nil
}

// Depth counts in Redis what is due (now or later), running, and dead, in time that
// does not grow with these: fit to be asked every second.
func (e *Engine) Depth(ctx context.Context) (persist.Depth, error) {
	d, err := e.store.Depth(ctx)
	if err != nil {
		return d, fmt.Errorf("orderwheel: depth: %w", err)
	}
	return d, nil
}

// Requeue brings a dead task back: it is due now, afresh, with all its attempts. False: it
// is not dead, and nothing was changed; after persist.ErrUnknownOutcome false may also
// mean that the call before did it.
func (e *Engine) Requeue(ctx context.Context, id string) (bool, error) {
	unlock, err := e.users.lock(ctx, id)
	if err != nil {
		return false, fmt.Errorf("orderwheel: requeue %q: waiting for another call on it: %w", id, err)
	}
	defer unlock()
	e.calls.Begin(id)
	answers, err := e.store.Requeue(ctx, []string{id})
	stored := err == nil || errors.Is(err, persist.ErrNotReplicated)
	requeued := stored && answers[0].State == persist.Scheduled
	switch {
	case requeued:
		e.userScheduled(id, answers[0].DueMS)
	case stored:
		e.userFailed(id, nil) // nothing has changed
	default:
		e.userFailed(id, err)
	}
	if err != nil {
		return requeued, fmt.Errorf("orderwheel: requeue %q: %w", id, err)
	}
	return requeued, nil
}

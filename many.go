package orderwheel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/orderwheel/orderwheel/persist"
)

// Due is an id and the instant at which it is due.
type Due struct {
	ID string
	At time.Time
}

// ScheduleMany is Schedule for many ids, in as few round trips as may be: to move
// orders from a scan job, or after a loss. Of an id that stands in it twice the last
// one wins.
//
// nil: all of them are durable. persist.ErrInvalid: it names each fault, and nothing was
// written. With any other error some of them may be written: persist.Missing(err,
// len(dues)) gives the places of those that are not known to be. To call it again is
// safe. See Schedule for the errors.
func (e *Engine) ScheduleMany(ctx context.Context, dues []Due) error {
	if e.cur.Load() == nil {
		return fmt.Errorf("%w: schedule %d ids", ErrClosed, len(dues))
	}
	tasks, last := make([]persist.Due, len(dues)), make(map[string]int, len(dues))
	var faults []error
	for i, d := range dues {
		ms, err := dueMS(d.At)
		if err != nil {
			faults = append(faults, fmt.Errorf("%q: %w", d.ID, err))
		}
		tasks[i], last[d.ID] = persist.Due{ID: d.ID, DueMS: ms}, i
	}
	if len(faults) > 0 {
		return fmt.Errorf("orderwheel: schedule %d ids: %w", len(dues), errors.Join(faults...))
	}
	unlock, err := e.lockMany(ctx, last)
	if err != nil {
		return fmt.Errorf("orderwheel: schedule %d ids: waiting for other calls on them: %w", len(dues), err)
	}
	defer unlock()
	for id := range last {
		e.calls.Begin(id)
	}
	err = e.store.Schedule(ctx, tasks)
	missing := persist.Missing(err, len(tasks))
	for id, i := range last {
		if _, none := slices.BinarySearch(missing, i); none {
			e.userFailed(id, err)
		} else {
			e.userScheduled(id, tasks[i].DueMS)
		}
	}
	if err != nil {
		return fmt.Errorf("orderwheel: schedule %d ids: %w", len(dues), err)
	}
	return nil
}

// lockMany waits for the turn of each id. All take them in one order, so that two
// calls never wait for each other.
func (e *Engine) lockMany(ctx context.Context, ids map[string]int) (unlock func(), err error) {
	order := make([]string, 0, len(ids))
	for id := range ids {
		order = append(order, id)
	}
	slices.Sort(order)
	var unlocks []func()
	unlock = func() {
		for _, u := range unlocks {
			u()
		}
	}
	for _, id := range order {
		u, err := e.users.lock(ctx, id)
		if err != nil {
			unlock()
			return nil, err
		}
		unlocks = append(unlocks, u)
	}
	return unlock, nil
}

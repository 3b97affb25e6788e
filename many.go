package orderwheel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/orderwheel/orderwheel/persist"
)

// Due is one task of ScheduleMany: ID is due at the instant At.
type Due struct {
	ID string
	At time.Time
}

// ScheduleMany is Schedule for any number of tasks, a thousand in one round trip.
// When it returns nil all of them are durable in Redis. An id that stands in dues twice
// is scheduled twice, in that order. What is written fires while the rest is still
// being written.
//
// Every fault of an id or a time is reported, as persist.ErrInvalid, before anything
// is written. Where only a part was written, because ctx ended or a shard of a Cluster is
// away, the error is a *persist.PartialError: Missing has the places in dues that were
// not written, or, with persist.ErrUnknownOutcome, perhaps were; persist.Missing
// tells them for any error. To call it again with these, or with all, is safe. The other
// errors are those of Schedule.
func (e *Engine) ScheduleMany(ctx context.Context, dues []Due) error {
	if e.cur.Load() == nil {
		return fmt.Errorf("%w: schedule %d tasks", ErrClosed, len(dues))
	}
	stored, err := storedDues(dues)
	if err == nil {
		err = e.inChunks(ctx, len(dues), func(i int) string { return dues[i].ID }, func(places []int) error {
			chunk := at(stored, places)
			last := make(map[string]int, len(chunk)) // of an id that stands twice the last one wins
			for k, d := range chunk {
				last[d.ID] = k
			}
			for id := range last {
				e.calls.Begin(id)
			}
			err := e.store.Schedule(ctx, chunk)
			missing := persist.Missing(err, len(chunk))
			for id, k := range last {
				if isIn(missing, k) {
					e.userFailed(id, err)
				} else {
					e.userScheduled(id, chunk[k].DueMS)
				}
			}
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("orderwheel: schedule %d tasks: %w", len(dues), err)
	}
	return nil
}

// CancelMany is Cancel for any number of ids, a thousand in one round trip. The
// answers stand in the order asked. Where some have none, they are false, and the error
// is a *persist.PartialError that names their places; persist.Missing tells them for
// any error. Other errors are those of Cancel.
func (e *Engine) CancelMany(ctx context.Context, ids []string) (cancelled []bool, err error) {
	if e.cur.Load() == nil {
		return nil, fmt.Errorf("%w: cancel %d tasks", ErrClosed, len(ids))
	}
	cancelled = make([]bool, len(ids))
	if err = checkIDs(ids); err == nil {
		err = e.inChunks(ctx, len(ids), func(i int) string { return ids[i] }, func(places []int) error {
			chunk := at(ids, places)
			first := make(map[string]int, len(chunk)) // it alone can be true
			for k, id := range slices.Backward(chunk) {
				first[id] = k
			}
			for id := range first {
				e.calls.Begin(id)
			}
			outcomes, err := e.store.Cancel(ctx, chunk)
			missing := persist.Missing(err, len(chunk))
			for id, k := range first {
				if isIn(missing, k) {
					e.userFailed(id, err)
				} else {
					started := e.userCancelled(id)
					cancelled[places[k]] = outcomes[k] == persist.Cancelled && !started
				}
			}
			return err
		})
	}
	if err != nil {
		return cancelled, fmt.Errorf("orderwheel: cancel %d tasks: %w", len(ids), err)
	}
	return cancelled, nil
}

// at is what list has at these places.
func at[T any](list []T, places []int) []T {
	some := make([]T, len(places))
	for k, i := range places {
		some[k] = list[i]
	}
	return some
}

// isIn tells whether place is one of missing, which ascend.
func isIn(missing []int, place int) bool {
	_, in := slices.BinarySearch(missing, place)
	return in
}

// inChunks splits a batch of n ids by shards, and these into chunks of persist.MaxBatch, in
// order. It calls do for each chunk, with its places in the batch, while it holds the
// turns of its ids. Shards are done at once, so that one that is away holds up none of the
// others; where one fails, the rest of it is not tried. The error names what has no
// answer by its place in the batch.
func (e *Engine) inChunks(ctx context.Context, n int, id func(i int) string, do func(places []int) error) error {
	var wg sync.WaitGroup
	parts := make([]part, e.store.Shards())
	for i := range n {
		p := &parts[e.store.ShardOf(id(i))]
		p.places = append(p.places, i)
	}
	for i := range parts {
		wg.Go(func() {
			parts[i].run(func(chunk []int) error { return e.inTurn(ctx, chunk, id, do) })
		})
	}
	wg.Wait()
	var missing []int
	var errs []error
	for _, p := range parts {
		missing = append(missing, p.missing...)
		errs = append(errs, p.failed, p.warned)
	}
	err := errors.Join(errs...)
	if len(missing) == 0 || len(missing) == n {
		return err
	}
	slices.Sort(missing)
	return &persist.PartialError{Missing: missing, Err: err}
}

// inTurn calls do for one chunk while it holds the turns of its ids.
func (e *Engine) inTurn(ctx context.Context, places []int, id func(i int) string, do func(places []int) error) error {
	ids := make([]string, len(places))
	for k, i := range places {
		ids[k] = id(i)
	}
	unlock, err := e.users.lockAll(ctx, ids)
	if err != nil {
		return fmt.Errorf("waiting for other calls on these ids: %w", err)
	}
	defer unlock()
	return do(places)
}

// part is what a batch has for one shard, and what came of it.
type part struct {
	places  []int // in the batch, ascending
	missing []int // of these, what has no answer
	failed  error // why; the first reason
	warned  error // the answers stand, but too few replicas have them
}

// run calls do for each chunk, until one fails. One for which there was no room may be
// followed by one that moves what is pending.
func (p *part) run(do func(places []int) error) {
	for from := 0; from < len(p.places); from += persist.MaxBatch {
		chunk := p.places[from:min(from+persist.MaxBatch, len(p.places))]
		err := do(chunk)
		missing := persist.Missing(err, len(chunk))
		if len(missing) == 0 {
			p.warned = cmp.Or(p.warned, err)
			continue
		}
		if partial := (*persist.PartialError)(nil); errors.As(err, &partial) {
			err = partial.Err // its places are those of the chunk
		}
		p.failed = cmp.Or(p.failed, err)
		for _, k := range missing {
			p.missing = append(p.missing, chunk[k])
		}
		if !errors.Is(err, persist.ErrOverloaded) {
			p.missing = append(p.missing, p.places[from+len(chunk):]...)
			return
		}
	}
}

// storedDues checks and rounds what the user gave.
func storedDues(dues []Due) ([]persist.Due, error) {
	stored := make([]persist.Due, len(dues))
	var f faults
	for i, d := range dues {
		ms, err := dueMS(d.At)
		f.add(i, checkID(d.ID), err)
		if f.full() {
			break
		}
		stored[i] = persist.Due{ID: d.ID, DueMS: ms}
	}
	return stored, f.err()
}

func checkIDs(ids []string) error {
	var f faults
	for i, id := range ids {
		if f.add(i, checkID(id)); f.full() {
			break
		}
	}
	return f.err()
}

func checkID(id string) error {
	if len(id) < 1 || len(id) > persist.MaxIDLen {
		return fmt.Errorf("%w: ID has %d bytes: use 1 to %d", persist.ErrInvalid, len(id), persist.MaxIDLen)
	}
	return nil
}

// maxFaults bounds the message for a batch in which everything is wrong.
const maxFaults = 10

// faults collects what is wrong with a batch, to report it at once.
type faults []error

func (f *faults) add(place int, errs ...error) {
	if err := errors.Join(errs...); err != nil {
		*f = append(*f, fmt.Errorf("task %d: %w", place, err))
	}
}

func (f faults) full() bool { return len(f) >= maxFaults }

func (f faults) err() error {
	if f.full() {
		f = append(f, fmt.Errorf("%w: and maybe more", persist.ErrInvalid))
	}
	return errors.Join(f...)
}

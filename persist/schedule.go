package persist

import "context"

// Schedule makes each task due at its time: nil means that all of them are written.
// A task that is due moves, and starts afresh; one that is running gets a
// successor, due once it has ended. The last one wins, also within a batch. A time
// that has passed is due at once.
//
// Every fault of the batch is reported, wrapped in ErrInvalid, before anything is
// written. ErrOverloaded is returned for new tasks over MaxPending. Any other error: see the
// classes, and PartialError: what it does not name is written.
func (r *Redis) Schedule(ctx context.Context, dues []Due) error {
	if err := checkDues(dues); err != nil {
		return err
	}
	if r.maxPending > 0 {
		return r.scheduleWithin(ctx, dues)
	}
	x := exchange[Due, struct{}]{
		ask:  flushed(scheduleWrite),
		id:   func(d Due) string { return d.ID },
		add:  func(args []any, d Due) []any { return append(args, d.ID, d.DueMS) },
		read: func(*reply, Due) struct{} { return struct{}{} }, // it answers nothing
	}
	_, err := x.each(ctx, r, dues)
	return err
}

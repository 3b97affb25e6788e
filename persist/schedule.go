package persist

import (
	"context"
	"fmt"
)

// Schedule makes each task due at its time: nil means that all of them are written.
// A task that is due moves, and starts afresh; one that is running gets a
// successor, due once it has ended. The last one wins, also within a batch. A time
// that has passed is due at once.
//
// Every fault of the batch is reported, wrapped in ErrInvalid, before anything is
// written. Any other error: see the classes; ErrUnknownOutcome also stands for a
// batch of more than MaxBatch of which a part was written.
func (r *Redis) Schedule(ctx context.Context, dues []Due) error {
	if err := checkDues(dues); err != nil {
		return err
	}
	written, err := each(ctx, r.flushed(r.user, scheduleWrite), dues,
		func(args []any, d Due) []any { return append(args, d.ID, d.DueMS) },
		func(*reply, Due) struct{} { return struct{}{} }) // it answers nothing
	if err != nil && len(written) > 0 {
		return fmt.Errorf("%d of %d tasks were written, %w: %w", len(written), len(dues), ErrUnknownOutcome, err)
	}
	return err
}

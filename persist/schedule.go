package persist

import (
	"context"
	"fmt"
	"slices"
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
	written := 0
	for chunk := range slices.Chunk(dues, MaxBatch) {
		args := make([]any, 0, 2*len(chunk))
		for _, d := range chunk {
			args = append(args, d.ID, d.DueMS)
		}
		rp, err := r.flushed(r.user, scheduleWrite)(ctx, len(chunk), args)
		if err == nil {
			err = rp.done()
		}
		if err != nil && written > 0 {
			return fmt.Errorf("%d of %d tasks were written, %w: %w", written, len(dues), ErrUnknownOutcome, err)
		}
		if err != nil {
			return err
		}
		written += len(chunk)
	}
	return nil
}

func checkDues(dues []Due) error {
	var f faults
	for i, d := range dues {
		f.add(checkID(i, d.ID))
		f.add(checkDueMS(i, d.DueMS))
		if f.full() {
			break
		}
	}
	return f.err()
}

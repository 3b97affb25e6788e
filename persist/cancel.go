package persist

import "context"

// Cancel cancels tasks. The outcomes stand in the order asked:
//
//   - Cancelled: it was due and will not run, unless it is scheduled again.
//   - Running: it has started. It will not be retried, and its successor, if it had
//     one, is gone. Also said of a task that is due again because its lease
//     ran out: it is removed, but its old handler may still be at work.
//   - NotFound: it is neither. It is done, dead, or was cancelled, or never was.
//
// ErrInvalid: an ID is not 1 to MaxIDLen bytes; nothing was asked. See
// PartialError.
func (r *Redis) Cancel(ctx context.Context, ids []string) ([]CancelOutcome, error) {
	return askIDs(ctx, r, flushed(cancelWrite), ids, func(rp *reply, _ string) CancelOutcome { return CancelOutcome(rp.int()) })
}

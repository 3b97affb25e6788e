package persist

import (
	"context"
	"slices"
)

// Cancel cancels tasks. The outcomes stand in the order asked:
//
//   - Cancelled: it was due and will not run, unless it is scheduled again.
//   - Running: it has started. It will not be retried, and its successor, if it had
//     one, is gone. Also said of a task that is due again because its lease
//     ran out: it is removed, but its old handler may still be at work.
//   - NotFound: it is neither. It is done, or was cancelled, or never was. When an
//     answer is lost on the way and the call repeats itself, a task that the
//     lost copy cancelled is NotFound too.
//
// ErrInvalid: an ID is not 1 to MaxIDLen bytes; nothing was asked.
// With an error the outcomes of the chunks (of MaxBatch) answered before it are
// returned.
func (r *Redis) Cancel(ctx context.Context, ids []string) ([]CancelOutcome, error) {
	var bad faults
	for i, id := range ids {
		if bad.add(checkID(i, id)); bad.full() {
			break
		}
	}
	if err := bad.err(); err != nil {
		return nil, err
	}
	outcomes := make([]CancelOutcome, 0, len(ids))
	for chunk := range slices.Chunk(ids, MaxBatch) {
		rp, err := r.write(ctx, r.user, write{op: "cancel", code: "x", ids: len(chunk), args: anys(chunk), values: 1})
		if err != nil {
			return outcomes, err
		}
		for range chunk {
			outcomes = append(outcomes, CancelOutcome(rp.int()))
		}
		if err := rp.done(); err != nil {
			return outcomes[:len(outcomes)-len(chunk)], err
		}
	}
	return outcomes, nil
}

// anys returns the strings as arguments of a command.
func anys(list []string) []any {
	args := make([]any, len(list))
	for i, s := range list {
		args[i] = s
	}
	return args
}

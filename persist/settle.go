package persist

import (
	"context"
	"slices"
)

// Ack says that claimed tasks are done. The settlements stand in the order asked:
//
//   - Settled: nothing is left of it.
//   - Scheduled: it was scheduled again meanwhile, and this successor is due at DueMS.
//   - Refused: the token is not that of its current claim, because the lease
//     ran out. Nothing was changed.
//
// When an answer is lost on the way and the call repeats itself, what the lost copy
// settled is answered as by that copy. Only a successor that is already
// running is answered Refused.
//
// With an error the settlements of the chunks (of MaxBatch) before it are returned.
func (r *Redis) Ack(ctx context.Context, leases []Lease) ([]Settlement, error) {
	settlements := make([]Settlement, 0, len(leases))
	for chunk := range slices.Chunk(leases, MaxBatch) {
		args := make([]any, 0, 2*len(chunk))
		for _, l := range chunk {
			args = append(args, l.ID, l.Token)
		}
		rp, err := r.write(ctx, r.work, write{op: "ack", code: "a", ids: len(chunk), args: args, values: 2})
		if err != nil {
			return settlements, err
		}
		answered := len(settlements)
		for _, l := range chunk {
			settlements = append(settlements, rp.settlement(l.ID))
		}
		if err := rp.done(); err != nil {
			return settlements[:answered], err
		}
	}
	return settlements, nil
}

// Retry puts claimed tasks back, due at DueMS each. The settlements stand in the
// order asked:
//
//   - Scheduled: it is due at DueMS, by this retry or by its successor, which wins.
//   - Settled: it was cancelled meanwhile, and nothing is left of it.
//   - Refused: as in Ack.
//
// Lost answers and errors: as in Ack, and what a lost copy put back is
// Scheduled where it stands. Every fault of the batch is reported, wrapped in
// ErrInvalid, before anything is written.
func (r *Redis) Retry(ctx context.Context, retries []Retry) ([]Settlement, error) {
	if err := checkRetries(retries); err != nil {
		return nil, err
	}
	settlements := make([]Settlement, 0, len(retries))
	for chunk := range slices.Chunk(retries, MaxBatch) {
		args := make([]any, 0, 4*len(chunk))
		for _, re := range chunk {
			args = append(args, re.ID, re.Token, re.DueMS, re.flags())
		}
		rp, err := r.write(ctx, r.work, write{op: "retry", code: "r", ids: len(chunk), args: args, values: 2})
		if err != nil {
			return settlements, err
		}
		answered := len(settlements)
		for _, re := range chunk {
			settlements = append(settlements, rp.settlement(re.ID))
		}
		if err := rp.done(); err != nil {
			return settlements[:answered], err
		}
	}
	return settlements, nil
}

// flags are the options of a retry as its script reads them.
func (r Retry) flags() string {
	f := ""
	if r.Uncounted {
		f += "u"
	}
	if r.Abandoned {
		f += "a"
	}
	if f == "" {
		return "-"
	}
	return f
}

// settlement reads the answer for one id.
func (r *reply) settlement(id string) Settlement {
	return Settlement{ID: id, State: SettleState(r.int()), DueMS: r.int()}
}

func checkRetries(retries []Retry) error {
	var f faults
	for i, re := range retries {
		f.add(checkDueMS(i, re.DueMS))
		if f.full() {
			break
		}
	}
	return f.err()
}

package persist

import (
	"context"
	"slices"
)

// each runs a script over a batch, MaxBatch of it in a call, and returns one answer
// for each. head goes in front of the arguments of every call; args appends those of one,
// read takes its answer from the reply. With an error the answers of the calls
// before it are returned.
func each[T, A any](
	ctx context.Context, r *Redis, s *script, head []any, batch []T,
	args func(call []any, one T) []any, read func(rp *reply, one T) A,
) ([]A, error) {
	answers := make([]A, 0, len(batch))
	for chunk := range slices.Chunk(batch, MaxBatch) {
		call := slices.Clone(head)
		for _, one := range chunk {
			call = args(call, one)
		}
		rp, err := r.run(ctx, s, call...)
		if err != nil {
			return answers, err
		}
		answered := len(answers)
		for _, one := range chunk {
			answers = append(answers, read(&rp, one))
		}
		if err := rp.done(); err != nil {
			return answers[:answered], err
		}
	}
	return answers, nil
}

// eachID is each for a batch of ids, after a check of them all.
func eachID[A any](ctx context.Context, r *Redis, s *script, ids []string, read func(rp *reply, id string) A) ([]A, error) {
	if err := checkIDs(ids); err != nil {
		return nil, err
	}
	return each(ctx, r, s, nil, ids, func(call []any, id string) []any { return append(call, id) }, read)
}

package persist

import (
	"context"
	"slices"
)

// The writes that go through a lane, without what differs from call to call. codes
// and values are those of lua/flush.lua.
var (
	scheduleWrite = write{op: "schedule", code: "s", newWork: true}
	cancelWrite   = write{op: "cancel", code: "x", values: 1}
	requeueWrite  = write{op: "requeue", code: "q", values: 2}
	discardWrite  = write{op: "discard", code: "d", values: 1}
	claimWrite    = write{op: "claim", code: "c", values: 4}
	ackWrite      = write{op: "ack", code: "a", values: 2}
	retryWrite    = write{op: "retry", code: "r", values: 2}
	buryWrite     = write{op: "bury", code: "b", values: 2}
	renewWrite    = write{op: "renew", code: "n", values: 1}
)

// call makes one call for so many ids, at most MaxBatch.
type call func(ctx context.Context, ids int, args []any) (reply, error)

// flushed is a call that goes with a flush of l. once stands in front of args.
func (r *Redis) flushed(l *lane, w write, once ...any) call {
	return func(ctx context.Context, ids int, args []any) (reply, error) {
		w := w
		w.ids, w.args = ids, append(slices.Clone(once), args...)
		return r.write(ctx, l, w)
	}
}

// scripted is a call of a script of its own.
func (r *Redis) scripted(s *script) call {
	return func(ctx context.Context, _ int, args []any) (reply, error) { return r.run(ctx, s, args...) }
}

// each makes calls for a batch and returns one answer for each of it. add appends
// the arguments of one, read takes its answer from the reply. With an error the
// answers of the calls before it are returned.
func each[T, A any](ctx context.Context, ask call, batch []T, add func(args []any, one T) []any, read func(rp *reply, one T) A) ([]A, error) {
	answers := make([]A, 0, len(batch))
	for chunk := range slices.Chunk(batch, MaxBatch) {
		var args []any
		for _, one := range chunk {
			args = add(args, one)
		}
		rp, err := ask(ctx, len(chunk), args)
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
func eachID[A any](ctx context.Context, ask call, ids []string, read func(rp *reply, id string) A) ([]A, error) {
	if err := checkIDs(ids); err != nil {
		return nil, err
	}
	return each(ctx, ask, ids, func(args []any, id string) []any { return append(args, id) }, read)
}

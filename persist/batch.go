package persist

import (
	"context"
	"slices"
)

// The writes that go through a lane, without what differs from call to call. codes
// and values are those of lua/flush.lua.
var (
	scheduleWrite       = write{op: "schedule", code: "s", lane: users, newWork: true}
	scheduleWithinWrite = write{op: "schedule", code: "l", lane: users, newWork: true, values: 1}
	ensureWrite         = write{op: "ensure", code: "e", lane: users, newWork: true, values: 1}
	cancelWrite         = write{op: "cancel", code: "x", lane: users, values: 1}
	requeueWrite        = write{op: "requeue", code: "q", lane: users, values: 2}
	discardWrite        = write{op: "discard", code: "d", lane: users, values: 1}
	claimWrite          = write{op: "claim", code: "c", lane: runs, values: 1}
	ackWrite            = write{op: "ack", code: "a", lane: acks, values: 2}
	retryWrite          = write{op: "retry", code: "r", lane: runs, values: 2}
	buryWrite           = write{op: "bury", code: "b", lane: runs, values: 2}
	renewWrite          = write{op: "renew", code: "n", lane: runs, values: 1}
)

// call makes one call for so many ids of one shard, at most MaxBatch.
type call func(ctx context.Context, s *shard, ids int, args []any) (reply, error)

// flushed is a call that goes with a flush. once are the values in front of args.
func flushed(w write, once ...any) call {
	return func(ctx context.Context, s *shard, ids int, args []any) (reply, error) {
		w := w
		w.once, w.ids, w.args = once, ids, args
		return s.write(ctx, w)
	}
}

// scripted is a call of a script of its own.
func scripted(sc *script) call {
	return func(ctx context.Context, s *shard, _ int, args []any) (reply, error) { return s.run(ctx, sc, args...) }
}

// exchange is how a batch is asked, and answered one by one.
type exchange[T, A any] struct {
	ask  call
	id   func(one T) string
	add  func(args []any, one T) []any // appends the arguments of one
	read func(rp *reply, one T) A      // takes the answer of one from the reply
}

// ofIDs is an exchange for a batch of ids.
func ofIDs[A any](ask call, read func(rp *reply, id string) A) exchange[string, A] {
	return exchange[string, A]{
		ask:  ask,
		id:   func(id string) string { return id },
		add:  func(args []any, id string) []any { return append(args, id) },
		read: read,
	}
}

// askIDs checks a batch of ids, and asks.
func askIDs[A any](ctx context.Context, r *Redis, ask call, ids []string, read func(rp *reply, id string) A) ([]A, error) {
	if err := checkIDs(ids); err != nil {
		return nil, err
	}
	return ofIDs(ask, read).each(ctx, r, ids)
}

// each returns one answer for each of batch, in its order. The shards are asked
// at once, each in chunks of MaxBatch, in order. When some of the batch has no
// answer the error is a *PartialError; when all of it has none, there are no
// answers.
func (x exchange[T, A]) each(ctx context.Context, r *Redis, batch []T) ([]A, error) {
	if len(batch) == 1 {
		return x.one(ctx, r, batch)
	}
	return x.many(ctx, r, batch)
}

// one is each for one: most calls of users are, and the lists of many would cost them as
// much as the rest of it.
func (x exchange[T, A]) one(ctx context.Context, r *Redis, batch []T) ([]A, error) {
	answers := make([]A, 1)
	shortfall, err := x.chunk(ctx, r.shards[r.ShardOf(x.id(batch[0]))], firstPlace, batch, answers)
	if err != nil {
		return nil, err
	}
	return answers, shortfall
}

var firstPlace = []int{0}

func (x exchange[T, A]) many(ctx context.Context, r *Redis, batch []T) ([]A, error) {
	answers := make([]A, len(batch))
	parts := r.split(len(batch), func(i int) string { return x.id(batch[i]) })
	missing, errs := make([][]int, len(parts)), make([]error, len(parts))
	atOnce(len(parts), func(i int) { missing[i], errs[i] = x.part(ctx, parts[i], batch, answers) })
	m, err := slices.Concat(missing...), join(errs)
	switch {
	case len(m) == 0:
		return answers, err
	case len(m) == len(batch):
		return nil, err
	}
	slices.Sort(m)
	return answers, &PartialError{Missing: m, Err: err}
}

// part fills in the answers of one shard. It returns the places that got none, and
// with the error, whether replicas lack what was written.
func (x exchange[T, A]) part(ctx context.Context, p part, batch []T, answers []A) (missing []int, err error) {
	var shortfall error
	for from := 0; from < len(p.places); from += MaxBatch {
		s, err := x.chunk(ctx, p.shard, p.places[from:min(from+MaxBatch, len(p.places))], batch, answers)
		if err != nil {
			return p.places[from:], join([]error{err, shortfall})
		}
		if s != nil {
			shortfall = s
		}
	}
	return nil, shortfall
}

// chunk makes one call, and fills in its answers.
func (x exchange[T, A]) chunk(ctx context.Context, s *shard, places []int, batch []T, answers []A) (shortfall, err error) {
	var args []any
	for _, i := range places {
		args = x.add(args, batch[i])
	}
	rp, err := x.ask(ctx, s, len(places), args)
	if err != nil {
		return nil, err
	}
	for _, i := range places {
		answers[i] = x.read(&rp, batch[i])
	}
	if err := rp.done(); err != nil {
		for _, i := range places {
			answers[i] = *new(A)
		}
		return nil, err
	}
	if rp.flush != nil {
		shortfall = rp.flush.shortfall
	}
	return shortfall, nil
}

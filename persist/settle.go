package persist

import "context"

// Ack says that claimed tasks are done. The settlements stand in the order asked:
//
//   - Settled: nothing is left of it.
//   - Scheduled: it was scheduled again meanwhile, and this successor is due at DueMS.
//   - Refused: the token is not that of its current claim, because the lease
//     ran out. Nothing was changed.
//
// See PartialError for an error that leaves some of the batch without an answer.
func (r *Redis) Ack(ctx context.Context, leases []Lease) ([]Settlement, error) {
	x := exchange[Lease, Settlement]{
		ask:  flushed(ackWrite),
		id:   func(l Lease) string { return l.ID },
		add:  func(args []any, l Lease) []any { return append(args, l.ID, l.Token) },
		read: func(rp *reply, l Lease) Settlement { return rp.settlement(l.ID) },
	}
	return x.each(ctx, r, leases)
}

// Retry puts claimed tasks back, due at DueMS each. The settlements stand in the
// order asked:
//
//   - Scheduled: it is due at DueMS, by this retry or by its successor, which wins.
//   - Settled: it was cancelled meanwhile, and nothing is left of it.
//   - Refused: as in Ack.
//
// Errors: as in Ack. Every fault of the batch is reported, wrapped in ErrInvalid, before
// anything is written.
func (r *Redis) Retry(ctx context.Context, retries []Retry) ([]Settlement, error) {
	if err := checkRetries(retries); err != nil {
		return nil, err
	}
	x := exchange[Retry, Settlement]{
		ask:  flushed(retryWrite),
		id:   func(re Retry) string { return re.ID },
		add:  func(args []any, re Retry) []any { return append(args, re.ID, re.Token, re.DueMS, re.flags()) },
		read: func(rp *reply, re Retry) Settlement { return rp.settlement(re.ID) },
	}
	return x.each(ctx, r, retries)
}

// Bury ends claimed tasks for good: each is dead now, with its reason, of which the
// first MaxReasonLen bytes are kept. It does not run again, unless it is requeued or
// scheduled. The settlements stand in the order asked:
//
//   - Settled: it is dead; or it was cancelled meanwhile, and nothing is left of it.
//   - Scheduled: it was scheduled again meanwhile, and this successor is due at DueMS.
//   - Refused: as in Ack.
//
// Errors: as in Ack.
func (r *Redis) Bury(ctx context.Context, burials []Burial) ([]Settlement, error) {
	x := exchange[Burial, Settlement]{
		ask:  flushed(buryWrite),
		id:   func(b Burial) string { return b.ID },
		add:  func(args []any, b Burial) []any { return append(args, b.ID, b.Token, cutReason(b.Reason)) },
		read: func(rp *reply, b Burial) Settlement { return rp.settlement(b.ID) },
	}
	return x.each(ctx, r, burials)
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

package persist

import (
	"context"
	"strings"
)

// What an operator asks and does: the dead tasks, one task, how many there are.

// Requeue brings dead tasks back. The settlements stand in the order asked:
//
//   - Scheduled: it is due now, at DueMS by the store's clock, and starts afresh: attempt
//     0. No wheel knows of it yet; arm it at DueMS, or leave it to the sweep.
//   - Refused: it is not dead. Nothing was changed.
//
// ErrInvalid: an ID is not 1 to MaxIDLen bytes; nothing was asked. See
// PartialError.
func (r *Redis) Requeue(ctx context.Context, ids []string) ([]Settlement, error) {
	return askIDs(ctx, r, flushed(requeueWrite), ids, func(rp *reply, id string) Settlement { return rp.settlement(id) })
}

// Discard forgets dead tasks. The answers stand in the order asked: true where nothing is
// left of it, false where it is not dead, and nothing was changed.
//
// ErrInvalid: an ID is not 1 to MaxIDLen bytes; nothing was asked. See
// PartialError.
func (r *Redis) Discard(ctx context.Context, ids []string) ([]bool, error) {
	return askIDs(ctx, r, flushed(discardWrite), ids, func(rp *reply, _ string) bool { return rp.int() == 1 })
}

// Dead reads dead tasks, the oldest burial first (then id by bytes): those after the
// cursor, at most limit of them. The zero Cursor starts at the beginning; Next of the page
// goes on. A page may have fewer than limit, and More all the same.
//
// What stays dead while pages are read is read exactly once, as in Window.
//
// ErrInvalid is returned for a limit below 1. A limit above MaxBatch takes several
// calls. With an error the page has what could be read, and Next is the cursor that
// was given.
func (r *Redis) Dead(ctx context.Context, after Cursor, limit int) (DeadPage, error) {
	if err := checkLimit(limit); err != nil {
		return DeadPage{Next: after}, err
	}
	p := pages[Dead]{
		place: func(d Dead) Cursor { return Cursor{DueMS: d.BuriedMS, ID: d.ID} },
		most:  MaxBatch,
		read: func(ctx context.Context, s *shard, after Cursor, n int) ([]Dead, Cursor, bool, error) {
			rp, err := s.run(ctx, deadScript, after.DueMS, after.ID, n)
			if err != nil {
				return nil, after, false, err
			}
			more, next := rp.int() == 1, Cursor{DueMS: rp.int(), ID: rp.string()}
			dead := rp.dead()
			return dead, next, more, rp.done()
		},
	}
	var page DeadPage
	var err error
	page.Dead, page.Next, page.More, err = p.page(ctx, r, fromStart(after), limit)
	return page, err
}

// dead reads dead tasks until the end.
func (r *reply) dead() []Dead {
	list := make([]Dead, 0, len(r.rest)/5)
	for len(r.rest) > 0 {
		list = append(list, Dead{
			ID: r.string(), BuriedMS: r.int(), FirstDueMS: r.int(), Attempt: int(r.int()), Reason: r.string(),
		})
	}
	return list
}

// Lookup tells all that the store knows of ids, in the order asked.
//
// ErrInvalid: an ID is not 1 to MaxIDLen bytes; nothing was asked. See
// PartialError.
func (r *Redis) Lookup(ctx context.Context, ids []string) ([]Record, error) {
	return askIDs(ctx, r, scripted(lookupScript), ids, (*reply).record)
}

// record reads what is known of one id.
func (r *reply) record(id string) Record {
	rec := Record{ID: id, Status: Status(r.int())}
	at := r.int()
	rec.FirstDueMS, rec.Attempt = r.int(), int(r.int())
	flags := r.string()
	rec.Cancelled, rec.Lost = strings.Contains(flags, "c"), strings.Contains(flags, "l")
	rec.Successor, rec.Reason = r.int(), r.string()
	switch rec.Status {
	case StatusDue:
		rec.DueMS = at
	case StatusRunning:
		rec.LeaseMS = at
	case StatusDead:
		rec.BuriedMS = at
	}
	return rec
}

// Depth counts the tasks. It costs the same however many there are.
func (r *Redis) Depth(ctx context.Context) (Depth, error) {
	depths, err := onShards(r, func(s *shard) (Depth, error) {
		rp, err := s.run(ctx, depthScript)
		if err != nil {
			return Depth{}, err
		}
		d := Depth{Due: rp.int(), Running: rp.int(), Dead: rp.int()}
		return d, rp.done()
	})
	if err != nil {
		return Depth{}, err
	}
	var sum Depth
	for _, d := range depths {
		sum.Due, sum.Running, sum.Dead = sum.Due+d.Due, sum.Running+d.Running, sum.Dead+d.Dead
	}
	return sum, nil
}

package persist

import "context"

// Ensure makes tasks due that stand nowhere, and leaves all others as they are: what is
// due keeps its time, what runs gets no successor, what is dead stays dead. So it can
// be asked for what another source says to be open, whatever happens to it meanwhile.
// The answers stand in the order asked: true where it stood nowhere, and is due now at
// its time.
//
// Errors: as in Schedule. See PartialError.
func (r *Redis) Ensure(ctx context.Context, dues []Due) ([]bool, error) {
	if err := checkDues(dues); err != nil {
		return nil, err
	}
	x := exchange[Due, bool]{
		ask:  flushed(ensureWrite),
		id:   func(d Due) string { return d.ID },
		add:  func(args []any, d Due) []any { return append(args, d.ID, d.DueMS) },
		read: func(rp *reply, _ Due) bool { return rp.int() == 1 },
	}
	return x.each(ctx, r, dues)
}

package persist

import (
	"context"
	"time"
)

// Renew makes the leases of claimed tasks longer: each ends that long from now by the
// store's clock (rounded up to milliseconds), or when it did before, if that is
// later. The answers stand in the order asked; false: the token is not that of its
// current claim, because the lease ran out and somebody took the task back. Nothing was
// changed then, and it may be at work elsewhere. A lease that has run out and that nobody took
// back yet is renewed. A task that was cancelled meanwhile is renewed too: it goes
// on, and is not retried.
//
// ErrInvalid is returned for a lease that is not longer than 0. See PartialError.
func (r *Redis) Renew(ctx context.Context, leases []Lease, lease time.Duration) ([]bool, error) {
	if err := checkLease(lease); err != nil {
		return nil, err
	}
	x := exchange[Lease, bool]{
		ask:  flushed(renewWrite, ceilMS(lease)),
		id:   func(l Lease) string { return l.ID },
		add:  func(args []any, l Lease) []any { return append(args, l.ID, l.Token) },
		read: func(rp *reply, _ Lease) bool { return rp.int() == 1 },
	}
	return x.each(ctx, r, leases)
}

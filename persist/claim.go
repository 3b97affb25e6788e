package persist

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"
)

// tokenRE keeps tokens to what stands as one word in a record. A single - stands
// for none there.
var tokenRE = regexp.MustCompile(`^([!-,.-~]|[!-~]{2,64})$`)

// Claim asks for tasks to run. Those that are due by the store's clock are the
// caller's until the lease (rounded up to milliseconds, at least 1) ends; only
// its token settles them. The token (1 to 64 visible ASCII characters, not a single
// -) must be new for every claim, never one per instance.
//
// A task that was claimed maxAttempts times already (0: there is no limit) and is due is
// Buried instead: it is dead now, with a reason that says so, and does not run. So a
// task whose every run kills its process ends too.
//
// A claim that ended in ErrUnknownOutcome may be made again with the same token and
// ids: what it already holds is Claimed again, as the same attempt, with a new lease;
// what it buried is Gone.
//
// ErrInvalid is returned for a bad token, lease or limit. With an error the answers of
// the chunks (of MaxBatch) before it are returned, and ids beyond them may be
// claimed if it wraps ErrUnknownOutcome: repeat it.
func (r *Redis) Claim(ctx context.Context, token string, ids []string, lease time.Duration, maxAttempts int) (Claims, error) {
	if err := errors.Join(checkClaim(token, lease), checkMaxAttempts(maxAttempts)); err != nil {
		return Claims{}, err
	}
	leaseMS := ceilMS(lease)
	claims := Claims{Claims: make([]Claim, 0, len(ids))}
	for chunk := range slices.Chunk(ids, MaxBatch) {
		rp, err := r.flushed(r.work, claimWrite, token, leaseMS, maxAttempts)(ctx, len(chunk), anys(chunk))
		if err != nil {
			return claims, err
		}
		answered := len(claims.Claims)
		age := rp.flush.clock.StoreUS/1000 - rp.flush.judgedMS // of an answer that was lost at first
		for _, id := range chunk {
			c := rp.claim(id)
			if c.State == NotYet {
				c.LeftMS = max(1, c.LeftMS-max(0, age))
			}
			claims.Claims = append(claims.Claims, c)
		}
		if err := rp.done(); err != nil {
			claims.Claims = claims.Claims[:answered]
			return claims, err
		}
		claims.Clock, claims.NowMS = rp.flush.clock, rp.flush.judgedMS
		if claims.Sent.IsZero() {
			claims.Sent = rp.flush.first
		}
	}
	return claims, nil
}

// anys returns the strings as arguments of a command.
func anys(list []string) []any {
	args := make([]any, len(list))
	for i, s := range list {
		args[i] = s
	}
	return args
}

// claim reads the answer for one id.
func (r *reply) claim(id string) Claim {
	c := Claim{ID: id, State: ClaimState(r.int())}
	attempt, dueMS, leftMS := r.int(), r.int(), r.int()
	switch c.State {
	case Claimed:
		c.Attempt, c.FirstDueMS = int(attempt), dueMS
	case NotYet:
		c.DueMS, c.LeftMS = dueMS, leftMS
	}
	return c
}

func checkClaim(token string, lease time.Duration) error {
	var f faults
	if !tokenRE.MatchString(token) {
		f.add(fmt.Errorf("%w: token is %q: use 1 to 64 visible ASCII characters, not a single -", ErrInvalid, token))
	}
	f.add(checkLease(lease))
	return f.err()
}

// ceilMS rounds up to milliseconds.
func ceilMS(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d%time.Millisecond != 0 {
		ms++
	}
	return ms
}

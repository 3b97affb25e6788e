package persist

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
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
// ErrInvalid is returned for a bad token, lease or limit. What a PartialError names may
// be claimed if it wraps ErrUnknownOutcome: repeat it.
func (r *Redis) Claim(ctx context.Context, token string, ids []string, lease time.Duration, maxAttempts int) (Claims, error) {
	if err := errors.Join(checkClaim(token, lease), checkMaxAttempts(maxAttempts)); err != nil {
		return Claims{}, err
	}
	x := ofIDs(flushed(claimWrite, ceilMS(lease), maxAttempts, token), (*reply).claim)
	judged, err := x.each(ctx, r, ids)
	claims := Claims{Claims: make([]Claim, len(judged))}
	var seen *answer
	for i, j := range judged {
		claims.Claims[i] = j.Claim
		f := j.flush
		if f == nil || f == seen {
			continue // it has no answer; or they came together
		}
		if seen == nil || f.judgedMS < claims.NowMS {
			claims.Clock, claims.NowMS = f.clock, f.judgedMS
		}
		if seen == nil || f.first.Before(claims.Sent) {
			claims.Sent = f.first
		}
		seen = f
	}
	return claims, err
}

// judgedClaim is a claim, and the flush whose answer has it.
type judgedClaim struct {
	Claim
	flush *answer
}

// claim reads the answer for one id.
func (r *reply) claim(id string) judgedClaim {
	word := r.string()
	if !strings.Contains(word, ":") {
		return judgedClaim{Claim{ID: id, State: Claimed, Attempt: 1, FirstDueMS: r.number(word)}, r.flush}
	}
	var part [4]int64
	for i := range part {
		var one string
		one, word, _ = strings.Cut(word, ":")
		part[i] = r.number(one)
	}
	c := Claim{ID: id, State: ClaimState(part[0])}
	attempt, dueMS, leftMS := part[1], part[2], part[3]
	switch c.State {
	case Claimed:
		c.Attempt, c.FirstDueMS = int(attempt), dueMS
	case NotYet:
		age := r.flush.clock.StoreUS/1000 - r.flush.judgedMS // of an answer that was lost at first
		c.DueMS, c.LeftMS = dueMS, max(1, leftMS-max(0, age))
	}
	return judgedClaim{c, r.flush}
}

func checkClaim(token string, lease time.Duration) error {
	var f faults
	f.add(checkToken("token", token))
	f.add(checkLease(lease))
	return f.err()
}

// checkToken judges what stands as one word in a record.
func checkToken(field, value string) error {
	if !tokenRE.MatchString(value) {
		return fmt.Errorf("%w: %s is %q: use 1 to 64 visible ASCII characters, not a single -", ErrInvalid, field, value)
	}
	return nil
}

// ceilMS rounds up to milliseconds.
func ceilMS(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d%time.Millisecond != 0 {
		ms++
	}
	return ms
}

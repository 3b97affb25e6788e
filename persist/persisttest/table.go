package persisttest

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/persist"
)

// operation is one table: what an operation on one id answers, and what it leaves, in each
// of the states. States that it does not name answer otherwise and stay as they are.
type operation struct {
	name      string
	do        func(t *testing.T, b *bed, w *words, id string) string
	otherwise string
	rows      []row
}

type row struct {
	state, says string
	leaves      string // empty: what was there
}

// table is one test for each operation, in which each state has its own.
var table = func() (list []conformance) {
	for _, op := range slices.Concat(userOps, runOps, deadOps) {
		list = append(list, conformance{op.name, op.test})
	}
	return list
}()

func (op operation) test(t *testing.T, b *bed) {
	for _, r := range op.rows {
		require.True(t, slices.ContainsFunc(states, func(s state) bool { return s.name == r.state }), "no state %q", r.state)
	}
	var all []string
	for _, s := range states {
		all = append(all, s.name)
		t.Run(s.name, func(t *testing.T) { op.testState(t, b, s) })
	}
	b.requireOnePlace(t, all...)
}

// testState makes an id with the state's name, in that state.
func (op operation) testState(t *testing.T, b *bed, s state) {
	id := s.name
	w := words{from: b.nowMS(t)}
	s.make(t, b, id)
	w.till = b.nowMS(t)
	before := b.lookup(t, id)[0]
	require.Equal(t, s.is, w.record(before))

	says, leaves := op.otherwise, ""
	for _, r := range op.rows {
		if r.state == s.name {
			says, leaves = r.says, r.leaves
		}
	}
	require.Equal(t, says, op.do(t, b, &w, id), "the answer")
	after := b.lookup(t, id)[0]
	w.till = b.nowMS(t)
	if leaves == "" {
		require.Equal(t, before, after, "it has to stay as it was")
		return
	}
	require.Equal(t, leaves, w.record(after), "what is left")
}

// scheduling is an operation that answers nothing.
func scheduling(ms int64) func(*testing.T, *bed, *words, string) string {
	return func(t *testing.T, b *bed, _ *words, id string) string {
		b.schedule(t, ms, id)
		return ""
	}
}

func cancelling(t *testing.T, b *bed, _ *words, id string) string {
	return b.cancel(t, id)[0].String()
}

// claiming asks for a minute.
func claiming(token string, maxAttempts int) func(*testing.T, *bed, *words, string) string {
	return func(t *testing.T, b *bed, w *words, id string) string {
		claims, err := b.Claim(b.ctx, token, []string{id}, time.Minute, maxAttempts)
		require.NoError(t, err)
		require.Len(t, claims.Claims, 1)
		require.Equal(t, id, claims.Claims[0].ID)
		return w.claim(t, claims.Claims[0], claims.NowMS)
	}
}

func acking(token string) func(*testing.T, *bed, *words, string) string {
	return func(t *testing.T, b *bed, w *words, id string) string {
		return w.settlement(t, b.ack(t, token, id)[0])
	}
}

func retrying(token string, r persist.Retry) func(*testing.T, *bed, *words, string) string {
	return func(t *testing.T, b *bed, w *words, id string) string {
		r := r
		r.Lease = persist.Lease{ID: id, Token: token}
		return w.settlement(t, b.retry(t, r))
	}
}

func burying(token string) func(*testing.T, *bed, *words, string) string {
	return func(t *testing.T, b *bed, w *words, id string) string {
		return w.settlement(t, b.bury(t, token, "reason new", id)[0])
	}
}

func renewing(token string, lease time.Duration) func(*testing.T, *bed, *words, string) string {
	return func(t *testing.T, b *bed, _ *words, id string) string {
		return yes(b.renew(t, token, lease, id)[0])
	}
}

func reaping(t *testing.T, b *bed, w *words, _ string) string {
	dues := b.reap(t, 100)
	w.till = b.nowMS(t)
	return w.dues(dues)
}

func requeueing(t *testing.T, b *bed, w *words, id string) string {
	s := b.requeue(t, id)[0]
	w.till = b.nowMS(t)
	return w.settlement(t, s)
}

func discarding(t *testing.T, b *bed, _ *words, id string) string {
	return yes(b.discard(t, id)[0])
}

func ensuring(ms int64) func(*testing.T, *bed, *words, string) string {
	return func(t *testing.T, b *bed, _ *words, id string) string {
		return yes(b.ensure(t, ms, id)[0])
	}
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

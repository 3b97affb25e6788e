// Package persisttest is the conformance suite of package persist: what every
// store must do, whatever it keeps the tasks in.
//
//	func TestConformance(t *testing.T) {
//		persisttest.Run(t, func(t *testing.T) persisttest.Bed {
//			return persisttest.Bed{Store: mystore.New()}
//		})
//	}
//
// The suite looks at a store through its methods alone. Random runs print their
// seed, and ORDERWHEEL_SEED sets it; ORDERWHEEL_LONG=1 makes fifty times as many.
package persisttest

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/persist"
)

// Bed is an empty store and what steers it.
type Bed struct {
	Store persist.Store

	// Advance moves the store's clock on by d. nil: the clock goes by itself, and the
	// suite waits; it never waits for more than some milliseconds.
	Advance func(d time.Duration)

	// Slow says that a call takes long however fast the store is, as where an interpreter
	// in the process runs it: large tests are made small, unless ORDERWHEEL_LONG=1.
	Slow bool

	// Owner returns one more handle of the same tasks, as another process has it.
	// nil: Store is used by all.
	Owner func(t *testing.T) persist.Store

	// Shard tells which part of the store has an id. What is promised of a chunk, of a limit
	// and of one reading of the clock holds for each part then, so tests of that take ids of
	// one. nil: there are no parts.
	Shard func(id string) int
}

// Run runs the suite. fresh is called for each test, from the test's goroutine; tests
// run in parallel, so what one bed does must not reach another.
func Run(t *testing.T, fresh func(t *testing.T) Bed) {
	t.Helper()
	for _, c := range suite {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, newBed(t, fresh))
		})
	}
	for _, seed := range Seeds(t, 5) {
		t.Run(fmt.Sprintf("random operations do what the model does/seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			b := newBed(t, fresh)
			walk(t, b, seed, b.size(250, 80))
		})
	}
}

// conformance is one test of the suite.
type conformance struct {
	name string
	test func(t *testing.T, b *bed)
}

var suite = slices.Concat(table, repeats, firsts, batches, inputs, odd, windows, deads, clocks, turns, racing)

// Due times that are never near any clock.
const (
	past   = 1_000
	future = 4_000_000_000_000 // in 2096
)

// bed is a Bed with the steps that tests are made of. Each fails the test when the store
// answers with an error.
type bed struct {
	persist.Store
	Bed
	ctx context.Context // ends only when something hangs
}

func newBed(t *testing.T, fresh func(t *testing.T) Bed) *bed {
	b := fresh(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return &bed{Store: b.Store, Bed: b, ctx: ctx}
}

// near makes ids that are in one part of the store: each begins with one of those given,
// cut if it is as long as can be.
func (b *bed) near(ids ...string) []string {
	if b.Shard == nil {
		return ids
	}
	list := make([]string, len(ids))
	for i, id := range ids {
		id = id[:min(len(id), persist.MaxIDLen-8)]
		for n := 0; list[i] == ""; n++ {
			if one := fmt.Sprintf("%s %d", id, n); b.Shard(one) == 0 {
				list[i] = one
			}
		}
	}
	return list
}

// size is how large a test is.
func (b *bed) size(large, slow int) int {
	if b.Slow && os.Getenv("ORDERWHEEL_LONG") != "1" {
		return slow
	}
	return large
}

// tie is how many stand in one millisecond: more than one call reads.
func (b *bed) tie() int { return b.size(3000, persist.MaxBatch+100) }

// nowMS is the store's clock.
func (b *bed) nowMS(t *testing.T) int64 {
	t.Helper()
	s, err := b.Now(b.ctx)
	require.NoError(t, err)
	return s.StoreUS / 1000
}

// pass returns when the store's clock has moved on by ms.
func (b *bed) pass(t *testing.T, ms int64) {
	t.Helper()
	if b.Advance != nil {
		b.Advance(time.Duration(ms) * time.Millisecond)
		return
	}
	for until := b.nowMS(t) + ms; b.nowMS(t) < until; {
		require.NoError(t, b.ctx.Err(), "the store's clock stands still")
	}
}

// schedule makes ids due at ms.
func (b *bed) schedule(t *testing.T, ms int64, ids ...string) {
	t.Helper()
	list := make([]persist.Due, len(ids))
	for i, id := range ids {
		list[i] = persist.Due{ID: id, DueMS: ms}
	}
	require.NoError(t, b.Schedule(b.ctx, list))
}

func (b *bed) cancel(t *testing.T, ids ...string) []persist.CancelOutcome {
	t.Helper()
	outcomes, err := b.Cancel(b.ctx, ids)
	require.NoError(t, err)
	return outcomes
}

// claim asks for ids, without a limit of attempts.
func (b *bed) claim(t *testing.T, token string, lease time.Duration, ids ...string) persist.Claims {
	t.Helper()
	claims, err := b.Claim(b.ctx, token, ids, lease, 0)
	require.NoError(t, err)
	require.Len(t, claims.Claims, len(ids))
	return claims
}

// take claims ids, all of which have to be due, for an hour.
func (b *bed) take(t *testing.T, token string, ids ...string) []persist.Claim {
	t.Helper()
	claims := b.claim(t, token, time.Hour, ids...).Claims
	for i, c := range claims {
		require.Equal(t, ids[i], c.ID)
		require.Equal(t, persist.Claimed, c.State, "claim of %q", c.ID)
	}
	return claims
}

func (b *bed) ack(t *testing.T, token string, ids ...string) []persist.Settlement {
	t.Helper()
	settlements, err := b.Ack(b.ctx, leases(token, ids...))
	require.NoError(t, err)
	return settlements
}

func (b *bed) retry(t *testing.T, r persist.Retry) persist.Settlement {
	t.Helper()
	settlements, err := b.Retry(b.ctx, []persist.Retry{r})
	require.NoError(t, err)
	require.Len(t, settlements, 1)
	return settlements[0]
}

func (b *bed) bury(t *testing.T, token, reason string, ids ...string) []persist.Settlement {
	t.Helper()
	burials := make([]persist.Burial, len(ids))
	for i, l := range leases(token, ids...) {
		burials[i] = persist.Burial{Lease: l, Reason: reason}
	}
	settlements, err := b.Bury(b.ctx, burials)
	require.NoError(t, err)
	return settlements
}

// kill makes ids dead, whatever they were: they must not be running.
func (b *bed) kill(t *testing.T, ids ...string) {
	t.Helper()
	b.schedule(t, past, ids...)
	b.take(t, "killer", ids...)
	for _, s := range b.bury(t, "killer", "killed", ids...) {
		require.Equal(t, persist.Settled, s.State)
	}
}

func (b *bed) renew(t *testing.T, token string, lease time.Duration, ids ...string) []bool {
	t.Helper()
	renewed, err := b.Renew(b.ctx, leases(token, ids...), lease)
	require.NoError(t, err)
	return renewed
}

func (b *bed) reap(t *testing.T, limit int) []persist.Due {
	t.Helper()
	list, err := b.Reap(b.ctx, limit)
	require.NoError(t, err)
	return list
}

func (b *bed) requeue(t *testing.T, ids ...string) []persist.Settlement {
	t.Helper()
	settlements, err := b.Requeue(b.ctx, ids)
	require.NoError(t, err)
	return settlements
}

func (b *bed) discard(t *testing.T, ids ...string) []bool {
	t.Helper()
	discarded, err := b.Discard(b.ctx, ids)
	require.NoError(t, err)
	return discarded
}

func (b *bed) ensure(t *testing.T, ms int64, ids ...string) []bool {
	t.Helper()
	var dues []persist.Due
	for _, id := range ids {
		dues = append(dues, persist.Due{ID: id, DueMS: ms})
	}
	ensured, err := b.Ensure(b.ctx, dues)
	require.NoError(t, err)
	return ensured
}

func (b *bed) lookup(t *testing.T, ids ...string) []persist.Record {
	t.Helper()
	records, err := b.Lookup(b.ctx, ids)
	require.NoError(t, err)
	require.Len(t, records, len(ids))
	for i, r := range records {
		require.Equal(t, ids[i], r.ID)
	}
	return records
}

func (b *bed) depth(t *testing.T) persist.Depth {
	t.Helper()
	depth, err := b.Depth(b.ctx)
	require.NoError(t, err)
	return depth
}

// leases names the claims of ids under one token.
func leases(token string, ids ...string) []persist.Lease {
	list := make([]persist.Lease, len(ids))
	for i, id := range ids {
		list[i] = persist.Lease{ID: id, Token: token}
	}
	return list
}

// names makes n ids, in order.
func names(prefix string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%s-%06d", prefix, i)
	}
	return list
}

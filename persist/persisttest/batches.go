package persisttest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/persist"
)

// many is more than two chunks.
const many = 2*persist.MaxBatch + 500

// batches is how lists are answered: in order, in chunks, and with ids that stand in
// them twice.
var batches = []conformance{
	{"an empty list asks nothing", func(t *testing.T, b *bed) {
		b.schedule(t, past)
		require.Empty(t, b.cancel(t))
		require.Empty(t, b.claim(t, token, time.Hour).Claims)
		require.Empty(t, b.ack(t, token))
		settlements, err := b.Retry(b.ctx, nil)
		require.NoError(t, err)
		require.Empty(t, settlements)
		require.Empty(t, b.bury(t, token, "none"))
		require.Empty(t, b.renew(t, token, time.Hour))
		require.Empty(t, b.requeue(t))
		require.Empty(t, b.discard(t))
		require.Empty(t, b.ensure(t, past))
		require.Empty(t, b.lookup(t))
		b.requireEmpty(t)
	}},

	{"a long list of cancels is answered in order", func(t *testing.T, b *bed) {
		ids, there := everyOther()
		b.schedule(t, past, there...)
		requireEveryOther(t, b.cancel(t, ids...), persist.Cancelled, persist.NotFound)
		b.requireEmpty(t)
	}},
	{"a long list of claims is answered in order", func(t *testing.T, b *bed) {
		ids, there := everyOther()
		b.schedule(t, past, there...)
		for i, c := range b.claim(t, token, time.Hour, ids...).Claims {
			want := persist.Claim{ID: ids[i], State: persist.Gone}
			if i%2 == 0 {
				want = persist.Claim{ID: ids[i], State: persist.Claimed, Attempt: 1, FirstDueMS: past}
			}
			require.Equal(t, want, c)
		}
		require.EqualValues(t, len(there), b.depth(t).Running)
	}},
	{"a long list of acks is answered in order", func(t *testing.T, b *bed) {
		ids, there := everyOther()
		b.schedule(t, past, there...)
		b.take(t, token, there...)
		requireSettled(t, ids, b.ack(t, token, ids...), persist.Settlement{State: persist.Settled})
		b.requireEmpty(t)
	}},
	{"a long list of retries is answered in order", func(t *testing.T, b *bed) {
		ids, there := everyOther()
		b.schedule(t, past, there...)
		b.take(t, token, there...)
		var retries []persist.Retry
		for _, l := range leases(token, ids...) {
			retries = append(retries, persist.Retry{Lease: l, DueMS: 5000})
		}
		settlements, err := b.Retry(b.ctx, retries)
		require.NoError(t, err)
		requireSettled(t, ids, settlements, persist.Settlement{State: persist.Scheduled, DueMS: 5000})
		require.Equal(t, persist.Depth{Due: int64(len(there))}, b.depth(t))
	}},
	{"a long list of burials is answered in order", func(t *testing.T, b *bed) {
		ids, there := everyOther()
		b.schedule(t, past, there...)
		b.take(t, token, there...)
		requireSettled(t, ids, b.bury(t, token, "gone wrong", ids...), persist.Settlement{State: persist.Settled})
		require.Equal(t, persist.Depth{Dead: int64(len(there))}, b.depth(t))
	}},
	{"a long list of renewals is answered in order", func(t *testing.T, b *bed) {
		ids, there := everyOther()
		b.schedule(t, past, there...)
		b.take(t, token, there...)
		requireEveryOther(t, b.renew(t, token, 2*time.Hour, ids...), true, false)
	}},
	{"a long list is requeued in order", func(t *testing.T, b *bed) {
		ids, there := everyOther()
		b.kill(t, there...)
		for i, s := range b.requeue(t, ids...) {
			require.Equal(t, ids[i], s.ID)
			if i%2 == 0 {
				require.Equal(t, persist.Scheduled, s.State)
			} else {
				require.Equal(t, persist.Settlement{ID: ids[i]}, s)
			}
		}
		require.Equal(t, persist.Depth{Due: int64(len(there))}, b.depth(t))
	}},
	{"a long list is discarded in order", func(t *testing.T, b *bed) {
		ids, there := everyOther()
		b.kill(t, there...)
		requireEveryOther(t, b.discard(t, ids...), true, false)
		b.requireEmpty(t)
	}},
	{"a long list is ensured in order", func(t *testing.T, b *bed) {
		ids, there := everyOther()
		b.schedule(t, past, there...)
		requireEveryOther(t, b.ensure(t, future, ids...), false, true)
		for i, d := range b.readDue(t, 700, nil) {
			require.Equal(t, i < len(there), d.DueMS == past, "%v", d)
		}
		require.Equal(t, persist.Depth{Due: int64(len(ids))}, b.depth(t))
	}},
	{"an id twice in one list is ensured once, at its first time", func(t *testing.T, b *bed) {
		ensured, err := b.Ensure(b.ctx, []persist.Due{{ID: "x", DueMS: 7}, {ID: "y", DueMS: 8}, {ID: "x", DueMS: 9}})
		require.NoError(t, err)
		require.Equal(t, []bool{true, true, false}, ensured)
		require.Equal(t, []persist.Due{{ID: "x", DueMS: 7}, {ID: "y", DueMS: 8}}, b.readDue(t, 10, nil))
	}},
	{"a list of ids in every place ensures only what is gone", func(t *testing.T, b *bed) {
		b.schedule(t, past, "due")
		b.start(t, "running")
		b.kill(t, "dead")
		require.Equal(t, []bool{false, true, false, false, true}, b.ensure(t, future, "due", "a", "running", "dead", "b"))
	}},
	{"a long list is looked up in order", func(t *testing.T, b *bed) {
		ids, there := everyOther()
		b.schedule(t, past, there...)
		for i, r := range b.lookup(t, ids...) {
			want := persist.Record{ID: ids[i]}
			if i%2 == 0 {
				want = persist.Record{ID: ids[i], Status: persist.StatusDue, DueMS: past}
			}
			require.Equal(t, want, r)
		}
	}},
	{"more than a chunk is reaped in one call, and not more than the limit", func(t *testing.T, b *bed) {
		ids := b.near(names("x", many)...)
		b.schedule(t, past, ids...)
		b.claim(t, token, time.Millisecond, ids...)
		b.pass(t, 2)
		require.Len(t, b.reap(t, persist.MaxBatch+200), persist.MaxBatch+200)
		require.Len(t, b.reap(t, 2*many), many-persist.MaxBatch-200)
		require.Empty(t, b.reap(t, many))
		require.Equal(t, persist.Depth{Due: many}, b.depth(t))
	}},

	{"the last of an id's due times in one list wins", func(t *testing.T, b *bed) {
		list := []persist.Due{{ID: "x", DueMS: 9000}, {ID: "y", DueMS: 1}, {ID: "x", DueMS: 1}, {ID: "x", DueMS: 5000}}
		require.NoError(t, b.Schedule(b.ctx, list))
		require.Equal(t, []persist.Due{{ID: "y", DueMS: 1}, {ID: "x", DueMS: 5000}}, b.readDue(t, 10, nil))

		b.schedule(t, past, names("between", many)...)
		list = append([]persist.Due{{ID: "z", DueMS: 1}}, b.readDue(t, 700, nil)...)
		list = append(list, persist.Due{ID: "z", DueMS: 2})
		require.NoError(t, b.Schedule(b.ctx, list))
		require.EqualValues(t, 2, b.lookup(t, "z")[0].DueMS, "also over several chunks")
	}},
	{"an id twice in one list of cancels is gone the second time", func(t *testing.T, b *bed) {
		b.schedule(t, past, "x")
		require.Equal(t, []persist.CancelOutcome{persist.Cancelled, persist.NotFound, persist.NotFound}, b.cancel(t, "x", "y", "x"))
	}},
	{"an id twice in one claim is one claim", func(t *testing.T, b *bed) {
		b.schedule(t, past, "x", "y")
		claims := b.take(t, token, "x", "y", "x")
		require.Equal(t, claims[0], claims[2])
		require.Equal(t, 1, b.lookup(t, "x")[0].Attempt)
	}},
	{"an id twice in one claim over its limit is gone the second time", func(t *testing.T, b *bed) {
		b.start(t, "x")
		b.putBack(t, token, persist.Retry{DueMS: past}, "x")
		claims, err := b.Claim(b.ctx, "tok2", []string{"x", "x"}, time.Hour, 1)
		require.NoError(t, err)
		require.Equal(t, []persist.Claim{{ID: "x", State: persist.Buried}, {ID: "x", State: persist.Gone}}, claims.Claims)
	}},
	{"an id twice in one list of acks is refused the second time", func(t *testing.T, b *bed) {
		b.start(t, "x")
		require.Equal(t, []persist.Settlement{{ID: "x", State: persist.Settled}, {ID: "x"}}, b.ack(t, token, "x", "x"))
	}},
	{"an id twice in one list of retries is refused the second time", func(t *testing.T, b *bed) {
		b.start(t, "x")
		l := persist.Lease{ID: "x", Token: token}
		settlements, err := b.Retry(b.ctx, []persist.Retry{{Lease: l, DueMS: 5000}, {Lease: l, DueMS: 6000}})
		require.NoError(t, err)
		require.Equal(t, []persist.Settlement{{ID: "x", State: persist.Scheduled, DueMS: 5000}, {ID: "x"}}, settlements)
		require.EqualValues(t, 5000, b.lookup(t, "x")[0].DueMS)
	}},
	{"an id twice in one list of burials keeps the first reason", func(t *testing.T, b *bed) {
		b.start(t, "x")
		l := persist.Lease{ID: "x", Token: token}
		settlements, err := b.Bury(b.ctx, []persist.Burial{{Lease: l, Reason: "first"}, {Lease: l, Reason: "second"}})
		require.NoError(t, err)
		require.Equal(t, []persist.Settlement{{ID: "x", State: persist.Settled}, {ID: "x"}}, settlements)
		require.Equal(t, "first", b.lookup(t, "x")[0].Reason)
	}},
	{"an id twice in one list is requeued, renewed and discarded once", func(t *testing.T, b *bed) {
		b.start(t, "x")
		require.Equal(t, []bool{true, true}, b.renew(t, token, 2*time.Hour, "x", "x"))
		b.bury(t, token, "gone wrong", "x")
		settlements := b.requeue(t, "x", "x")
		require.Equal(t, persist.Scheduled, settlements[0].State)
		require.Equal(t, persist.Settlement{ID: "x"}, settlements[1])
		b.kill(t, "x")
		require.Equal(t, []bool{true, false}, b.discard(t, "x", "x"))
		require.Equal(t, []persist.Record{{ID: "x"}, {ID: "x"}}, b.lookup(t, "x", "x"))
	}},
}

// everyOther is a long list of ids, and those of it that stand at even places.
func everyOther() (ids, even []string) {
	ids = names("x", many)
	for i := 0; i < many; i += 2 {
		even = append(even, ids[i])
	}
	return ids, even
}

func requireEveryOther[A any](t *testing.T, answers []A, even, odd A) {
	t.Helper()
	require.Len(t, answers, many)
	for i, a := range answers {
		want := odd
		if i%2 == 0 {
			want = even
		}
		require.Equal(t, want, a, "answer %d", i)
	}
}

// requireSettled wants even, with its id, at even places, and a refusal at odd ones.
func requireSettled(t *testing.T, ids []string, settlements []persist.Settlement, even persist.Settlement) {
	t.Helper()
	require.Len(t, settlements, len(ids))
	for i, s := range settlements {
		want := persist.Settlement{ID: ids[i]}
		if i%2 == 0 {
			want = even
			want.ID = ids[i]
		}
		require.Equal(t, want, s)
	}
}

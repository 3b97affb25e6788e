package persisttest

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/persist"
)

// byBytes are ids in their order: a locale would sort case, accents and signs its own
// way, and C strings end at a NUL.
var byBytes = []string{
	"\x00", "\x00\x00", "\x00a", " ", " a", "-", "A", "B", "Z", "a", "a\x00", "a\x00b", "aa", "b", "z",
	"{", "{a}b", "}", "\x80", "Ä", "ä", "订单", "\xff", "\xff\xfe",
}

// odd is ids, reasons and due times at their limits: each passes through every operation
// unharmed.
var odd = []conformance{
	{"ids of any bytes pass through every operation", func(t *testing.T, b *bed) {
		ids := anyBytes()
		b.schedule(t, past, ids...)
		require.Equal(t, ids, dueIDs(b.readDue(t, 100, nil)), "in the order of their bytes")
		b.requireOnePlace(t, ids...)
		b.take(t, token, ids...)
		b.schedule(t, future, ids...)
		for _, o := range b.cancel(t, ids...) { // the successor
			require.Equal(t, persist.Running, o)
		}
		b.schedule(t, past, ids...)
		require.NotContains(t, b.renew(t, token, 2*time.Hour, ids...), false)
		requireEach(t, ids, b.ack(t, token, ids...), persist.Settlement{State: persist.Scheduled, DueMS: past})
		b.take(t, token, ids...)
		var retries []persist.Retry
		for _, l := range leases(token, ids...) {
			retries = append(retries, persist.Retry{Lease: l, DueMS: 2000, Abandoned: true})
		}
		settlements, err := b.Retry(b.ctx, retries)
		require.NoError(t, err)
		requireEach(t, ids, settlements, persist.Settlement{State: persist.Scheduled, DueMS: 2000})
		claims := b.claim(t, "tok2", time.Millisecond, ids...).Claims
		for i, id := range ids {
			require.Equal(t, persist.Claim{ID: id, State: persist.Claimed, Attempt: 2, FirstDueMS: past}, claims[i])
		}
		b.requireOnePlace(t, ids...)
		b.pass(t, 2)
		b.requireOrder(t, ids, dueIDs(b.reap(t, 1000)), "one lease, so in the order of their bytes")
		b.take(t, "tok3", ids...)
		requireEach(t, ids, b.bury(t, "tok3", "why", ids...), persist.Settlement{State: persist.Settled})
		b.requireOrder(t, ids, deadIDs(b.readDead(t, 100, nil)), "one burial, so in the order of their bytes")
		b.requireOnePlace(t, ids...)
		for _, s := range b.requeue(t, ids...) {
			require.Equal(t, persist.Scheduled, s.State)
		}
		b.take(t, "tok4", ids...)
		requireEach(t, ids, b.ack(t, "tok4", ids...), persist.Settlement{State: persist.Settled})
		b.requireEmpty(t)
		b.schedule(t, past, ids...)
		for _, o := range b.cancel(t, ids...) {
			require.Equal(t, persist.Cancelled, o)
		}
		b.kill(t, ids...)
		require.NotContains(t, b.discard(t, ids...), false)
		b.requireEmpty(t)
	}},
	{"each byte alone is an id of its own", func(t *testing.T, b *bed) {
		var ids []string
		for value := range 256 {
			ids = append(ids, string([]byte{byte(value)}))
		}
		require.NoError(t, b.Schedule(b.ctx, eachDue(ids)))
		for i, r := range b.lookup(t, ids...) {
			require.Equal(t, persist.Record{ID: ids[i], Status: persist.StatusDue, DueMS: int64(i)}, r)
		}
		for i, c := range b.take(t, token, ids...) {
			require.Equal(t, int64(i), c.FirstDueMS)
		}
		b.bury(t, token, "why", ids...)
		for i, r := range b.lookup(t, ids...) {
			require.Equal(t, persist.StatusDead, r.Status)
			require.Equal(t, int64(i), r.FirstDueMS)
		}
		b.requireOrder(t, ids, deadIDs(b.readDead(t, 100, nil)), "one burial, so in the order of their bytes")
	}},
	{"a reason keeps its bytes", func(t *testing.T, b *bed) {
		for _, reason := range []string{"", " ", "-", "3 1000 why", "nul\x00nul", "line\nbreak", "\xff\xfe", strings.Repeat("r", persist.MaxReasonLen)} {
			b.start(t, "x")
			b.bury(t, token, reason, "x")
			require.Equal(t, reason, b.lookup(t, "x")[0].Reason)
			require.Equal(t, reason, b.readDead(t, 10, nil)[0].Reason)
		}
	}},
	{"a long reason is cut", func(t *testing.T, b *bed) {
		b.start(t, "x")
		b.bury(t, token, strings.Repeat("r", persist.MaxReasonLen)+"more", "x")
		require.Equal(t, strings.Repeat("r", persist.MaxReasonLen), b.lookup(t, "x")[0].Reason)
	}},

	// Cases 71 and 139.
	{"schedule, window and claim keep every digit of a due time", func(t *testing.T, b *bed) {
		list, ids := digits(t)
		require.NoError(t, b.Schedule(b.ctx, list))
		require.ElementsMatch(t, list, b.readDue(t, 100, nil))
		claims := b.claim(t, token, time.Hour, ids...)
		for i, c := range claims.Claims {
			want := persist.Claim{ID: ids[i], State: persist.Claimed, Attempt: 1, FirstDueMS: list[i].DueMS}
			if list[i].DueMS > claims.NowMS {
				want = persist.Claim{ID: ids[i], State: persist.NotYet, DueMS: list[i].DueMS, LeftMS: list[i].DueMS - claims.NowMS}
			}
			if b.Shard != nil && want.LeftMS > 0 { // NowMS is that of the first
				require.LessOrEqual(t, c.LeftMS, want.LeftMS)
				require.GreaterOrEqual(t, c.LeftMS, list[i].DueMS-b.nowMS(t))
				want.LeftMS = c.LeftMS
			}
			require.Equal(t, want, c)
		}
	}},
	{"retry keeps every digit of a due time", func(t *testing.T, b *bed) {
		list, ids := digits(t)
		b.schedule(t, past, ids...)
		b.take(t, token, ids...)
		for i, d := range list {
			b.putBack(t, token, persist.Retry{DueMS: d.DueMS}, ids[i])
		}
		require.ElementsMatch(t, list, b.readDue(t, 100, nil))
	}},
	{"a successor keeps every digit of its due time", func(t *testing.T, b *bed) {
		list, ids := digits(t)
		b.schedule(t, past, ids...)
		b.take(t, token, ids...)
		require.NoError(t, b.Schedule(b.ctx, list))
		for i, s := range b.ack(t, token, ids...) {
			require.Equal(t, persist.Settlement{ID: ids[i], State: persist.Scheduled, DueMS: list[i].DueMS}, s)
		}
		require.ElementsMatch(t, list, b.readDue(t, 100, nil))
	}},
	{"the first due of the dead keeps every digit", func(t *testing.T, b *bed) {
		list, ids := digits(t)
		require.NoError(t, b.Schedule(b.ctx, list))
		claims := b.claim(t, token, time.Hour, ids...)
		b.bury(t, token, "gone wrong", ids...)
		for i, r := range b.lookup(t, ids...) {
			if list[i].DueMS <= claims.NowMS {
				require.Equal(t, persist.StatusDead, r.Status)
				require.Equal(t, list[i].DueMS, r.FirstDueMS)
			}
		}
		b.requireOnePlace(t, ids...)
	}},
}

// anyBytes are ids of all kinds, in their order: each byte alone, all bytes in one, the
// shortest and the longest, and what a script or a record could take for its own.
func anyBytes() []string {
	var up, down []byte
	ids := append(slices.Clone(byBytes), oddIDs...)
	for value := range 256 {
		ids = append(ids, string([]byte{byte(value)}))
		up = append(up, byte(value))
		down = append([]byte{byte(value)}, down...)
	}
	ids = append(ids, string(up), string(down))
	for _, s := range []string{"x", "\x00", "\xff", "}", " "} {
		ids = append(ids, strings.Repeat(s, persist.MaxIDLen), strings.Repeat(s, persist.MaxIDLen-1))
	}
	ids = append(ids, "?", "ua", "1 ", "0x10", "1e309", "nan", "-inf", "+inf", "(1", "[a", "%d", "\\0", "\"", "*", "nil", "false", "{}", "}{", "{orderwheel:0}:due")
	slices.Sort(ids)
	return slices.Compact(ids)
}

// eachDue has the n-th due at n.
func eachDue(ids []string) (list []persist.Due) {
	for i, id := range ids {
		list = append(list, persist.Due{ID: id, DueMS: int64(i)})
	}
	return list
}

// requireEach wants the same answer for each id.
func requireEach(t *testing.T, ids []string, got []persist.Settlement, want persist.Settlement) {
	t.Helper()
	require.Len(t, got, len(ids))
	for i, id := range ids {
		want.ID = id
		require.Equal(t, want, got[i])
	}
}

// digits are round due times, which a server may write as 4e+12, their neighbours, and
// random ones of every magnitude, each under an id of its own.
func digits(t *testing.T) (list []persist.Due, ids []string) {
	all := []int64{0, persist.MaxDueMS, 99_999_999_999_999, 123_456_789_012_345, math.MaxInt32, math.MaxUint32}
	for n := int64(1); n <= persist.MaxDueMS; n *= 10 {
		for k := int64(1); k < 10 && n*k < persist.MaxDueMS; k += 3 {
			all = append(all, n*k-1, n*k, n*k+1)
		}
	}
	seed := Seeds(t, 1)[0]
	t.Logf("ORDERWHEEL_SEED=%d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 50 {
		all = append(all, rnd.Int64N(int64(math.Pow10(1+rnd.IntN(14)))), rnd.Int64N(persist.MaxDueMS+1))
	}
	ids = names("x", len(all))
	for i, ms := range all {
		list = append(list, persist.Due{ID: ids[i], DueMS: ms})
	}
	return list, ids
}

// requireOrder fails if got is not want; in any order where the ids stand in several
// parts of a store, each with a clock of its own.
func (b *bed) requireOrder(t *testing.T, want, got []string, about string) {
	t.Helper()
	if b.Shard != nil {
		require.ElementsMatch(t, want, got)
		return
	}
	require.Equal(t, want, got, about)
}

package persist_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/persist"
	"github.com/stretchr/testify/require"
)

// The walker's steps that bury, renew, and do what an operator does.

// oddReasons look like a record, are too long, or have any bytes.
var oddReasons = []string{
	"", " ", "-", "broken", "17 1000 broken", "- - -", "line\nbreak\r\n", "nul\x00nul\x00", "\xff\xfe", "订单",
	strings.Repeat("r", persist.MaxReasonLen), strings.Repeat("é", persist.MaxReasonLen), // cut, and not between letters
}

// instant is when Redis made the last call: of a real one it is read from what the
// call left.
func (w *walker) instant(t *testing.T, left int64) int64 {
	t.Helper()
	if w.mini != nil {
		return w.nowMS
	}
	require.True(t, w.nowMS <= left && left <= w.bed.nowMS(t), "at %d, which began at %d", left, w.nowMS)
	return left
}

func (w *walker) score(t *testing.T, key, id string) int64 {
	t.Helper()
	score, err := w.client.ZScore(t.Context(), key, id).Result()
	require.NoError(t, err)
	return int64(score)
}

func (w *walker) stepBury(t *testing.T) string {
	var burials []persist.Burial
	for _, id := range w.batch() {
		burials = append(burials, persist.Burial{Lease: w.lease(id), Reason: oddReasons[w.rnd.IntN(len(oddReasons))]})
	}
	got, err := w.Bury(t.Context(), burials)
	require.NoError(t, err)
	nowMS := w.nowMS
	for _, b := range burials {
		if task := w.model[b.ID]; w.model.held(b.Lease) && task.succ < 0 && !task.cancelled {
			nowMS = w.instant(t, w.score(t, keyDead, b.ID))
		}
	}
	return agree(t, fmt.Sprintf("bury %+v at %d", burials, nowMS), burials, got, func(b persist.Burial) persist.Settlement { return w.model.bury(b, nowMS) })
}

func (w *walker) stepRenew(t *testing.T) string {
	var leases []persist.Lease
	for _, id := range w.batch() {
		leases = append(leases, w.lease(id))
	}
	leaseMS := []int64{1, 3_600_000, 7_200_000}[w.rnd.IntN(3)]
	got, err := w.Renew(t.Context(), leases, time.Duration(leaseMS)*time.Millisecond)
	require.NoError(t, err)
	nowMS := w.nowMS
	for _, l := range leases {
		if !w.model.held(l) {
			continue
		}
		if until := w.score(t, keyRunning, l.ID); until > w.model[l.ID].lease {
			nowMS = w.instant(t, until-leaseMS)
		}
	}
	return agree(t, fmt.Sprintf("renew %+v by %d ms at %d", leases, leaseMS, nowMS), leases, got, func(l persist.Lease) bool { return w.model.renew(l, nowMS, leaseMS) })
}

func (w *walker) stepRequeue(t *testing.T) string {
	list := w.batch()
	got, err := w.Requeue(t.Context(), list)
	require.NoError(t, err)
	nowMS := w.nowMS
	for _, s := range got {
		if s.State == persist.Scheduled {
			nowMS = w.instant(t, s.DueMS)
			break
		}
	}
	return agree(t, fmt.Sprintf("requeue %q at %d", list, nowMS), list, got, func(id string) persist.Settlement { return w.model.requeue(id, nowMS) })
}

func (w *walker) stepDiscard(t *testing.T) string {
	list := w.batch()
	got, err := w.Discard(t.Context(), list)
	require.NoError(t, err)
	return agree(t, fmt.Sprintf("discard %q", list), list, got, w.model.discard)
}

func (w *walker) stepEnsure(t *testing.T) string {
	var list []persist.Due
	for _, id := range w.batch() {
		list = append(list, persist.Due{ID: id, DueMS: w.dueMS()})
	}
	got, err := w.Ensure(t.Context(), list)
	require.NoError(t, err)
	return agree(t, fmt.Sprintf("ensure %+v", list), list, got, w.model.ensure)
}

// compareDead reads the dead in pages of a random size.
func (w *walker) compareDead(t *testing.T) {
	limit := 1 + w.rnd.IntN(5)
	want := w.model.dead()
	var got []persist.Dead
	for page := (persist.DeadPage{More: true}); page.More; {
		var err error
		page, err = w.Dead(t.Context(), page.Next, limit)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page.Dead), limit)
		got = append(got, page.Dead...)
		require.Equal(t, len(got) < len(want), page.More)
	}
	require.Equal(t, want, got)
}

// compareRecords looks up every id, and counts.
func (w *walker) compareRecords(t *testing.T) {
	list := append(w.batch(), oddIDs...)
	got, err := w.Lookup(t.Context(), list)
	require.NoError(t, err)
	var want []persist.Record
	for _, id := range list {
		want = append(want, w.model.lookup(id))
	}
	require.Equal(t, want, got)
	depth, err := w.Depth(t.Context())
	require.NoError(t, err)
	require.Equal(t, w.model.depth(), depth)
}

package persist_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/persist"
	"github.com/orderwheel/orderwheel/persist/persisttest"
	"github.com/stretchr/testify/require"
)

func TestRandomOperationsDoWhatTheModelDoesOnRedis(t *testing.T) {
	t.Parallel()
	b := setupReal(t)
	for _, seed := range persisttest.Seeds(t, 5) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			require.NoError(t, b.client.FlushAll(t.Context()).Err())
			walk(t, b, seed, 300)
		})
	}
}

// oddIDs are few, so that operations meet, and of every kind of bytes.
var oddIDs = []string{
	"a", "b", "-", "0", "order 17", "line\nbreak", "nul\x00nul", "nul\x00", "\xff\xfe", "Ä订单",
	strings.Repeat("x", persist.MaxIDLen), "tok - 1 c 2 3",
}

// walker makes random operations on the store and the model and compares.
type walker struct {
	bed
	rnd    *rand.Rand
	model  model
	tokens []string
	nowMS  int64 // miniredis: its clock. Redis: read before each operation
}

func walk(t *testing.T, b bed, seed uint64, steps int) {
	w := newWalker(b, seed)
	for step := range steps {
		w.tick(t)
		op := w.step(t)
		require.Equal(t, w.model.stored(), w.stored(t), "after step %d, %s", step, op)
		if step%4 == 0 {
			w.compareWindow(t)
			w.compareDead(t)
			w.compareRecords(t)
		}
	}
	w.drain(t)
}

func newWalker(b bed, seed uint64) *walker {
	return &walker{
		bed:    b,
		rnd:    rand.New(rand.NewPCG(seed, 0)),
		model:  model{},
		tokens: []string{"none"},
		nowMS:  time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixMilli(),
	}
}

// tick moves the clock of miniredis, or reads that of Redis.
func (w *walker) tick(t *testing.T) {
	if w.mini == nil {
		w.nowMS = w.bed.nowMS(t)
		return
	}
	w.nowMS += w.rnd.Int64N(40)
	w.mini.SetTime(time.UnixMilli(w.nowMS).Add(time.Duration(w.rnd.Int64N(1000)) * time.Microsecond))
}

func (w *walker) step(t *testing.T) string {
	switch w.rnd.IntN(16) {
	case 0, 1, 2:
		return w.stepSchedule(t)
	case 3:
		return w.stepCancel(t)
	case 4, 5, 6:
		return w.stepClaim(t)
	case 7:
		return w.stepAck(t)
	case 8, 9:
		return w.stepRetry(t)
	case 10:
		return w.stepBury(t)
	case 11:
		return w.stepRenew(t)
	case 12:
		return w.stepRequeue(t)
	case 13:
		return w.stepDiscard(t)
	case 14:
		return w.stepEnsure(t)
	default:
		return w.stepReap(t)
	}
}

// batch is a few ids; some stand in it twice.
func (w *walker) batch() []string {
	list := make([]string, 1+w.rnd.IntN(6))
	for i := range list {
		list[i] = oddIDs[w.rnd.IntN(len(oddIDs))]
	}
	return list
}

// dueMS is around now, or far from it on either side.
func (w *walker) dueMS() int64 {
	switch w.rnd.IntN(10) {
	case 0: // round ones: a server may write 4e+12
		return int64(w.rnd.IntN(10)) * int64(math.Pow10(w.rnd.IntN(14)))
	case 1:
		return persist.MaxDueMS - w.rnd.Int64N(3)
	case 2, 3:
		return w.nowMS + 3_600_000
	default:
		return w.nowMS - 30 + w.rnd.Int64N(40)
	}
}

// lease names an id and mostly the token that it runs under.
func (w *walker) lease(id string) persist.Lease {
	token := w.tokens[w.rnd.IntN(len(w.tokens))]
	if task := w.model[id]; task != nil && task.token != "" && w.rnd.IntN(4) > 0 {
		token = task.token
	}
	return persist.Lease{ID: id, Token: token}
}

func (w *walker) stepSchedule(t *testing.T) string {
	var dues []persist.Due
	for _, id := range w.batch() {
		dues = append(dues, persist.Due{ID: id, DueMS: w.dueMS()})
	}
	require.NoError(t, w.Schedule(t.Context(), dues))
	for _, d := range dues {
		w.model.schedule(d.ID, d.DueMS)
	}
	return fmt.Sprintf("schedule %+v", dues)
}

// agree checks the answers to what was asked, in its order, against the model's, and
// returns op.
func agree[Q, A any](t *testing.T, op string, asked []Q, got []A, model func(Q) A) string {
	t.Helper()
	var want []A
	for _, q := range asked {
		want = append(want, model(q))
	}
	require.Equal(t, want, got, op)
	return op
}

func (w *walker) stepCancel(t *testing.T) string {
	list := w.batch()
	got, err := w.Cancel(t.Context(), list)
	require.NoError(t, err)
	return agree(t, fmt.Sprintf("cancel %q", list), list, got, w.model.cancel)
}

func (w *walker) stepClaim(t *testing.T) string {
	list := w.batch()
	token := w.tokens[w.rnd.IntN(len(w.tokens))]
	if w.rnd.IntN(4) > 0 {
		token = fmt.Sprintf("tok%d", len(w.tokens))
		w.tokens = append(w.tokens, token)
	}
	leaseMS := []int64{1, 3_600_000}[w.rnd.IntN(2)]
	most := []int{0, 0, 1, 2, 3}[w.rnd.IntN(5)]
	got, err := w.Claim(t.Context(), token, list, time.Duration(leaseMS)*time.Millisecond, most)
	require.NoError(t, err)
	if w.mini != nil {
		require.Equal(t, w.nowMS, got.NowMS)
	}
	return agree(t, fmt.Sprintf("claim %s %q for %d ms at %d, at most %d times", token, list, leaseMS, got.NowMS, most), list, got.Claims, func(id string) persist.Claim { return w.model.claim(id, token, got.NowMS, leaseMS, most) })
}

func (w *walker) stepAck(t *testing.T) string {
	var leases []persist.Lease
	for _, id := range w.batch() {
		leases = append(leases, w.lease(id))
	}
	got, err := w.Ack(t.Context(), leases)
	require.NoError(t, err)
	return agree(t, fmt.Sprintf("ack %+v", leases), leases, got, w.model.ack)
}

func (w *walker) stepRetry(t *testing.T) string {
	var retries []persist.Retry
	for _, id := range w.batch() {
		retries = append(retries, persist.Retry{
			Lease: w.lease(id), DueMS: w.dueMS(), Uncounted: w.rnd.IntN(3) == 0, Abandoned: w.rnd.IntN(4) == 0,
		})
	}
	got, err := w.Retry(t.Context(), retries)
	require.NoError(t, err)
	return agree(t, fmt.Sprintf("retry %+v", retries), retries, got, w.model.retry)
}

// stepReap: the clock of Redis moves on by itself, so there the short leases are
// over first, and the instant is read from what was taken back without a successor.
func (w *walker) stepReap(t *testing.T) string {
	limit := 1 + w.rnd.IntN(5)
	nowMS := w.nowMS
	if w.mini == nil {
		for _, task := range w.model {
			if task.running() && task.lease < w.nowMS+1_000_000 {
				w.waitFor(t, task.lease)
			}
		}
		nowMS = w.bed.nowMS(t)
	}
	got, err := w.Reap(t.Context(), limit)
	require.NoError(t, err)
	if w.mini == nil {
		after := w.bed.nowMS(t)
		for _, d := range got {
			if w.model[d.ID].succ < 0 {
				require.True(t, nowMS <= d.DueMS && d.DueMS <= after, "taken back at %d, between %d and %d", d.DueMS, nowMS, after)
				nowMS = d.DueMS
				break
			}
		}
	}
	op := fmt.Sprintf("reap %d at %d", limit, nowMS)
	want := w.model.reap(nowMS, limit)
	require.Equal(t, len(want), len(got), op)
	for i := range want {
		require.Equal(t, want[i], got[i], op)
	}
	return op
}

// compareWindow reads what is due up to a random time in pages of a random size.
func (w *walker) compareWindow(t *testing.T) {
	until := w.dueMS()
	limit := 1 + w.rnd.IntN(5)
	want := w.model.window(until)
	var got []persist.Due
	for page := (persist.Page{More: true}); page.More; {
		var err error
		page, err = w.Window(t.Context(), page.Next, until, limit)
		require.NoError(t, err)
		got = append(got, page.Due...)
		require.Equal(t, len(got) < len(want), page.More)
	}
	require.Equal(t, want, got)
}

// drain runs and acknowledges everything: no key may be left.
func (w *walker) drain(t *testing.T) {
	for len(w.model) > 0 {
		for id, task := range w.model {
			if !task.running() {
				require.NoError(t, w.Schedule(t.Context(), []persist.Due{{ID: id}}))
				w.model.schedule(id, 0)
				c := w.claimed(t, "last", time.Hour, id)[0]
				require.Equal(t, 1, c.Attempt)
				task = w.model[id]
				w.model.claim(id, "last", w.nowMS, 1, 0)
			}
			l := persist.Lease{ID: id, Token: task.token}
			got, err := w.Ack(t.Context(), []persist.Lease{l})
			require.NoError(t, err)
			require.Equal(t, w.model.ack(l), got[0])
		}
	}
	w.requireEmpty(t)
}

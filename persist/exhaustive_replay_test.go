//go:build !race

package persist_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/persist"
	"github.com/stretchr/testify/require"
)

// Every different step that the exploration made is made on the stores: the task is put
// where the step found it, by hand, the call is made, and what it says and leaves has to be
// what the model says. So what was explored is what the scripts do.

// hour is a tick. A test takes less than half of it, so that what a store writes
// by a clock that goes on is still of the right tick.
const hour = int64(time.Hour / time.Millisecond)

// replayed is a step for an id of its own.
type replayed struct {
	id   string
	step step
	want outcome
	got  outcome
}

// steps are those of all plays, by the kind of their op.
func steps(t *testing.T, keep func(cell) bool) map[kind][]*replayed {
	t.Helper()
	all := map[step]outcome{}
	for _, f := range explored() {
		require.Empty(t, f.wrong)
		for s, o := range f.steps {
			if keep(s.before) {
				all[s] = o
			}
		}
	}
	byKind := map[kind][]*replayed{}
	for s, o := range all {
		// Reap does not say what is gone.
		if s.op.kind == reap && o.answer.state == settled {
			o.answer.state = refused
		}
		list := byKind[s.op.kind]
		byKind[s.op.kind] = append(list, &replayed{id: fmt.Sprintf("%v-%d", kindNames[s.op.kind], len(list)), step: s, want: o})
	}
	for k := schedule; k <= reap; k++ {
		require.NotEmpty(t, byKind[k], kindNames[k])
	}
	return byKind
}

// stage is a store that nothing else works on.
type stage struct {
	persist.Store
	baseMS int64 // the tick zero
	exact  bool  // its clock stands still there
	rounds int   // of Reap, until it has seen every record
}

func (s stage) ms(tick int8) int64 {
	if tick == ever {
		return 0
	}
	return s.baseMS + int64(tick-zero)*hour
}

func (s stage) tick(t *testing.T, ms int64) int8 {
	t.Helper()
	if ms == 0 {
		return ever
	}
	if s.exact {
		require.Zero(t, (ms-s.baseMS)%hour, "%d, at %d", ms, s.baseMS)
	}
	return int8((ms - s.baseMS + hour/2 + zero*hour) / hour)
}

func tokenName(token int8) string {
	if token == 0 {
		return ""
	}
	return fmt.Sprintf("tok%d", token)
}

// ask makes the calls, all of one kind, and takes the answers.
func (s stage) ask(t *testing.T, list []*replayed) {
	t.Helper()
	slices.SortFunc(list, func(a, b *replayed) int {
		return cmp.Or(cmp.Compare(a.step.op.token, b.step.op.token), cmp.Compare(a.step.op.arg, b.step.op.arg))
	})
	if list[0].step.op.kind == reap {
		s.askReap(t, list)
		return
	}
	for part := range slices.Chunk(list, 300) {
		s.askPart(t, part)
	}
}

// askPart is ask for so many that each call ends soon.
func (s stage) askPart(t *testing.T, list []*replayed) {
	t.Helper()
	ids, leases := make([]string, len(list)), make([]persist.Lease, len(list))
	for i, r := range list {
		ids[i], leases[i] = r.id, persist.Lease{ID: r.id, Token: tokenName(r.step.op.token)}
	}
	ctx := bounded(t)
	switch list[0].step.op.kind {
	case schedule:
		var dues []persist.Due
		for _, r := range list {
			dues = append(dues, persist.Due{ID: r.id, DueMS: s.ms(r.step.op.at)})
		}
		require.NoError(t, s.Schedule(ctx, dues))
	case cancel:
		got, err := s.Cancel(ctx, ids)
		require.NoError(t, err)
		for i, r := range list {
			r.got.answer.state = int8(got[i])
		}
	case claim:
		s.askClaims(t, list)
	case ack:
		got, err := s.Ack(ctx, leases)
		s.settlements(t, list, got, err)
	case retry:
		var retries []persist.Retry
		for i, r := range list {
			retries = append(retries, persist.Retry{
				Lease: leases[i], DueMS: s.ms(r.step.op.at),
				Uncounted: r.step.op.arg&uncounted != 0, Abandoned: r.step.op.arg&abandoned != 0,
			})
		}
		got, err := s.Retry(ctx, retries)
		s.settlements(t, list, got, err)
	case bury:
		var burials []persist.Burial
		for _, l := range leases {
			burials = append(burials, persist.Burial{Lease: l, Reason: "broken"})
		}
		got, err := s.Bury(ctx, burials)
		s.settlements(t, list, got, err)
	case renew:
		got, err := s.Renew(ctx, leases, renewLease*time.Hour)
		require.NoError(t, err)
		s.bools(list, got)
	case requeue:
		got, err := s.Requeue(ctx, ids)
		s.settlements(t, list, got, err)
	case ensure:
		var dues []persist.Due
		for _, r := range list {
			dues = append(dues, persist.Due{ID: r.id, DueMS: s.ms(r.step.op.at)})
		}
		got, err := s.Ensure(ctx, dues)
		require.NoError(t, err)
		s.bools(list, got)
	case discard:
		got, err := s.Discard(ctx, ids)
		require.NoError(t, err)
		s.bools(list, got)
	}
}

func (s stage) bools(list []*replayed, got []bool) {
	for i, r := range list {
		if got[i] {
			r.got.answer.state = 1
		}
	}
}

func (s stage) settlements(t *testing.T, list []*replayed, got []persist.Settlement, err error) {
	t.Helper()
	require.NoError(t, err)
	require.Len(t, got, len(list))
	for i, r := range list {
		require.Equal(t, r.id, got[i].ID)
		r.got.answer.state = int8(got[i].State)
		if got[i].State == persist.Scheduled {
			r.got.answer.at = s.tick(t, got[i].DueMS)
		}
	}
}

// askClaims makes one call for each token and limit: list is in their order.
func (s stage) askClaims(t *testing.T, list []*replayed) {
	t.Helper()
	for len(list) > 0 {
		o := list[0].step.op
		n := slices.IndexFunc(list, func(r *replayed) bool { return r.step.op != o })
		if n < 0 {
			n = len(list)
		}
		var ids []string
		for _, r := range list[:n] {
			ids = append(ids, r.id)
		}
		got, err := s.Claim(bounded(t), tokenName(o.token), ids, claimLease*time.Hour, int(o.arg))
		require.NoError(t, err)
		for i, r := range list[:n] {
			c, a := got.Claims[i], &r.got.answer
			require.Equal(t, r.id, c.ID)
			a.state, a.attempt = int8(c.State), int8(c.Attempt)
			switch c.State {
			case persist.Claimed:
				a.at = s.tick(t, c.FirstDueMS)
			case persist.NotYet:
				a.at, a.left = s.tick(t, c.DueMS), int8((c.LeftMS+hour/2)/hour)
			}
		}
		list = list[n:]
	}
}

// askReap takes back all that there is to take back.
func (s stage) askReap(t *testing.T, list []*replayed) {
	t.Helper()
	byID := map[string]*replayed{}
	for _, r := range list {
		byID[r.id] = r
	}
	for range s.rounds {
		got, err := s.Reap(bounded(t), len(list)+1)
		require.NoError(t, err)
		for _, d := range got {
			r := byID[d.ID]
			require.NotNil(t, r, d.ID)
			require.Zero(t, r.got.answer, "%q was taken back twice", d.ID)
			r.got.answer = answer{state: scheduled, at: s.tick(t, d.DueMS)}
		}
	}
}

// compare fails with the steps that the store made otherwise.
func compare(t *testing.T, list []*replayed) {
	t.Helper()
	wrong := 0
	for _, r := range list {
		if r.got == r.want {
			continue
		}
		if wrong++; wrong <= 10 {
			t.Errorf("%v of %v:\nthe model says %+v, and leaves %v\nthe store says %+v, and leaves %v",
				r.step.op, r.step.before, r.want.answer, r.want.after, r.got.answer, r.got.after)
		}
	}
	if wrong > 0 {
		t.Fatalf("%d of %d steps are not those of the model", wrong, len(list))
	}
}

// byScript tells whether scripts alone leave c: a Memory knows no others.
func byScript(c cell) bool {
	places := 0
	for _, at := range []int8{c.due, c.lease, c.buried} {
		if at != none {
			places++
		}
	}
	isRun := c.lease != none
	return places <= 1 && c.lease != ever && isRun == (c.token != 0) && (places == 1 && c.buried == none || c.attempt == 0)
}

func TestMemoryMakesEveryStepOfTheExploration(t *testing.T) {
	t.Parallel()
	for _, list := range steps(t, byScript) {
		m := persist.NewMemory(noon.UnixMilli)
		s := stage{Store: m, baseMS: noon.UnixMilli(), exact: true, rounds: 2}
		for _, r := range list {
			s.put(m, r)
		}
		s.ask(t, list)
		for _, r := range list {
			r.got.after = s.peek(t, m, r.id)
		}
		compare(t, list)
	}
}

// put makes the task of a Memory stand where the step found it.
func (s stage) put(m *persist.Memory, r *replayed) {
	c := r.step.before
	rec := persist.Record{ID: r.id, Attempt: int(c.attempt), Cancelled: c.cancelled, Lost: c.lost}
	switch {
	case c.due != none:
		rec.Status, rec.DueMS = persist.StatusDue, s.ms(c.due)
	case c.lease != none:
		rec.Status, rec.LeaseMS = persist.StatusRunning, s.ms(c.lease)
	case c.buried != none:
		rec.Status, rec.BuriedMS = persist.StatusDead, s.ms(c.buried)
	default:
		return
	}
	if c.first != none {
		rec.FirstDueMS = s.ms(c.first)
	}
	if c.succ != none {
		rec.Successor = s.ms(c.succ)
	}
	m.Put(rec, tokenName(c.token))
}

// peek is what a Memory has of the task. What Redis keeps of the dead in reasons
// only, and of a task that never ran nowhere, is left out.
func (s stage) peek(t *testing.T, m *persist.Memory, id string) cell {
	t.Helper()
	got, err := m.Lookup(bounded(t), []string{id})
	require.NoError(t, err)
	rec, c := got[0], nowhere
	switch rec.Status {
	case persist.StatusDue:
		c.due = s.tick(t, rec.DueMS)
	case persist.StatusRunning:
		c.lease = s.tick(t, rec.LeaseMS)
	case persist.StatusDead:
		c.buried = s.tick(t, rec.BuriedMS)
		return c
	}
	for i := range int8(10) {
		if m.Token(id) == tokenName(i) {
			c.token = i
		}
	}
	c.attempt, c.cancelled, c.lost = int8(rec.Attempt), rec.Cancelled, rec.Lost
	if rec.FirstDueMS != 0 {
		c.first = s.tick(t, rec.FirstDueMS)
	}
	if rec.Successor != 0 {
		c.succ = s.tick(t, rec.Successor)
	}
	return c
}

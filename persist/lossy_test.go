package persist_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/persist"
	"github.com/stretchr/testify/require"
)

// Random operations whose answers are lost at random leave what they would have
// left, and say what they would have said, but for what the docs except.
func TestRandomLostAnswersChangeNothing(t *testing.T) {
	t.Parallel()
	for _, seed := range seeds(t, 5) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			b, p := behindProxy(t, setupMini(t))
			lossy(t, b, p, seed)
		})
	}
}

func lossy(t *testing.T, b bed, p *proxy, seed uint64) {
	faultRnd := rand.New(rand.NewPCG(seed, 1))
	lost := false
	w := newWalker(b, seed)
	for step := range 200 {
		w.tick(t)
		lost = false
		p.decide(func([]string) fault {
			if faultRnd.IntN(3) == 0 {
				lost = true
				return lostAnswer
			}
			return fault{}
		})
		op := w.lossyStep(t, func() bool { p.decide(nil); return lost })
		require.Equal(t, w.model.stored(), w.stored(t), "after step %d, %s", step, op)
	}
	w.drain(t)
}

// lossyStep makes one random operation on one id. lost tells, after it, whether an
// answer was lost.
func (w *walker) lossyStep(t *testing.T, lost func() bool) string {
	id := w.batch()[0]
	switch w.rnd.IntN(12) {
	case 0, 1, 2:
		ms := w.dueMS()
		w.scheduled(t, ms, id)
		lost()
		w.model.schedule(id, ms)
		return fmt.Sprintf("schedule %q %d", id, ms)
	case 3:
		got, err := w.Cancel(t.Context(), []string{id})
		require.NoError(t, err)
		if want := w.model.cancel(id); got[0] != want {
			require.True(t, lost())
			require.Equal(t, persist.NotFound, got[0])
		}
		return fmt.Sprintf("cancel %q", id)
	case 4, 5:
		return w.lossyClaim(t, id, lost)
	case 6:
		l := w.lease(id)
		held := w.model.held(l)
		got, err := w.Ack(t.Context(), []persist.Lease{l})
		require.NoError(t, err)
		want := w.model.ack(l)
		w.requireSettled(t, held || !lost(), want, got[0])
		if task := w.model[id]; !held && task != nil && task.dead() {
			require.Equal(t, persist.Refused, got[0].State)
		}
		return fmt.Sprintf("ack %+v", l)
	case 7:
		r := persist.Retry{Lease: w.lease(id), DueMS: w.dueMS(), Abandoned: w.rnd.IntN(4) == 0}
		held := w.model.held(r.Lease)
		got, err := w.Retry(t.Context(), []persist.Retry{r})
		require.NoError(t, err)
		if want := w.model.retry(r); held || !lost() {
			require.Equal(t, want, got[0])
		} else if task := w.model[id]; task != nil && (task.running() || task.dead()) {
			require.Equal(t, persist.Refused, got[0].State)
		}
		return fmt.Sprintf("retry %+v", r)
	case 8:
		b := persist.Burial{Lease: w.lease(id), Reason: oddReasons[w.rnd.IntN(len(oddReasons))]}
		held := w.model.held(b.Lease)
		got, err := w.Bury(t.Context(), []persist.Burial{b})
		require.NoError(t, err)
		want := w.model.bury(b, w.nowMS)
		w.requireSettled(t, held || !lost(), want, got[0])
		return fmt.Sprintf("bury %+v", b)
	case 9:
		l := w.lease(id)
		got, err := w.Renew(t.Context(), []persist.Lease{l}, 2*time.Hour)
		require.NoError(t, err)
		require.Equal(t, w.model.renew(l, w.nowMS, 7_200_000), got[0])
		return fmt.Sprintf("renew %+v", l)
	case 10:
		got, err := w.Requeue(t.Context(), []string{id})
		require.NoError(t, err)
		if want := w.model.requeue(id, w.nowMS); got[0] != want {
			// It was due anyway, as if this call had made it so.
			require.True(t, lost())
			require.Equal(t, persist.Settlement{ID: id, State: persist.Scheduled, DueMS: w.model[id].due}, got[0])
			require.LessOrEqual(t, got[0].DueMS, w.nowMS)
		}
		return fmt.Sprintf("requeue %q", id)
	default:
		got, err := w.Discard(t.Context(), []string{id})
		require.NoError(t, err)
		if want := w.model.discard(id); got[0] != want {
			require.True(t, lost())
			require.False(t, got[0])
		}
		return fmt.Sprintf("discard %q", id)
	}
}

func (w *walker) lossyClaim(t *testing.T, id string, lost func() bool) string {
	w.tokens = append(w.tokens, fmt.Sprintf("tok%d", len(w.tokens)))
	token := w.tokens[len(w.tokens)-1]
	most := w.rnd.IntN(3)
	wasDead := w.model[id] != nil && w.model[id].dead()
	got, err := w.Claim(t.Context(), token, []string{id}, time.Hour, most)
	require.NoError(t, err)
	want := w.model.claim(id, token, got.NowMS, 3_600_000, most)
	if wasDead && lost() {
		want.State = persist.Buried // as if this call had done it
	}
	require.Equal(t, want, got.Claims[0])
	return fmt.Sprintf("claim %q, at most %d times", id, most)
}

// requireSettled checks the answer to an ack or a burial. It has to be what the model
// says, but for a call that was repeated without holding its claim: that cannot know, and
// is refused at least where another claim goes on.
func (w *walker) requireSettled(t *testing.T, sure bool, want, got persist.Settlement) {
	t.Helper()
	if sure {
		require.Equal(t, want, got)
	} else if task := w.model[want.ID]; task != nil && !task.dead() && (task.running() || task.attempt > 0 || task.lost) {
		require.Equal(t, persist.Refused, got.State)
	}
}

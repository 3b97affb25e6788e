package persist_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/internal/faultproxy"
	"github.com/orderwheel/orderwheel/persist"
	"github.com/orderwheel/orderwheel/persist/persisttest"
	"github.com/stretchr/testify/require"
)

// Random operations whose answers are lost at random leave what they would have
// left, and say what they would have said.
func TestRandomLostAnswersChangeNothing(t *testing.T) {
	t.Parallel()
	for _, seed := range persisttest.Seeds(t, 5) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			b, p := behindProxy(t, setupMini(t))
			lossy(t, b, p, seed)
		})
	}
}

func lossy(t *testing.T, b bed, p *proxy, seed uint64) {
	faultRnd := rand.New(rand.NewPCG(seed, 1))
	w := newWalker(b, seed)
	for step := range 200 {
		w.tick(t)
		p.decide(func(faultproxy.Command) faultproxy.Action {
			if faultRnd.IntN(3) == 0 {
				return lostAnswer
			}
			return pass
		})
		op := w.lossyStep(t)
		p.decide(nil)
		require.Equal(t, w.model.stored(), w.stored(t), "after step %d, %s", step, op)
	}
	w.drain(t)
}

// lossyStep makes one random operation on one id.
func (w *walker) lossyStep(t *testing.T) string {
	id := w.batch()[0]
	switch w.rnd.IntN(12) {
	case 0, 1, 2:
		ms := w.dueMS()
		w.scheduled(t, ms, id)
		w.model.schedule(id, ms)
		return fmt.Sprintf("schedule %q %d", id, ms)
	case 3:
		got, err := w.Cancel(t.Context(), []string{id})
		require.NoError(t, err)
		require.Equal(t, w.model.cancel(id), got[0])
		return fmt.Sprintf("cancel %q", id)
	case 4, 5:
		w.tokens = append(w.tokens, fmt.Sprintf("tok%d", len(w.tokens)))
		token := w.tokens[len(w.tokens)-1]
		most := w.rnd.IntN(3)
		got, err := w.Claim(t.Context(), token, []string{id}, time.Hour, most)
		require.NoError(t, err)
		require.Equal(t, w.model.claim(id, token, got.NowMS, 3_600_000, most), got.Claims[0])
		return fmt.Sprintf("claim %q, at most %d times", id, most)
	case 6:
		l := w.lease(id)
		got, err := w.Ack(t.Context(), []persist.Lease{l})
		require.NoError(t, err)
		require.Equal(t, w.model.ack(l), got[0])
		return fmt.Sprintf("ack %+v", l)
	case 7:
		r := persist.Retry{Lease: w.lease(id), DueMS: w.dueMS(), Abandoned: w.rnd.IntN(4) == 0}
		got, err := w.Retry(t.Context(), []persist.Retry{r})
		require.NoError(t, err)
		require.Equal(t, w.model.retry(r), got[0])
		return fmt.Sprintf("retry %+v", r)
	case 8:
		b := persist.Burial{Lease: w.lease(id), Reason: oddReasons[w.rnd.IntN(len(oddReasons))]}
		got, err := w.Bury(t.Context(), []persist.Burial{b})
		require.NoError(t, err)
		require.Equal(t, w.model.bury(b, w.nowMS), got[0])
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
		require.Equal(t, w.model.requeue(id, w.nowMS), got[0])
		return fmt.Sprintf("requeue %q", id)
	default:
		got, err := w.Discard(t.Context(), []string{id})
		require.NoError(t, err)
		require.Equal(t, w.model.discard(id), got[0])
		return fmt.Sprintf("discard %q", id)
	}
}

package persisttest

import (
	"fmt"
	"math"
	"time"

	"github.com/orderwheel/orderwheel/persist"
)

// randomOp is one random operation: what it asks of the store, and of the model as if
// it was judged at nowMS.
type randomOp struct {
	name  string
	store func() (any, error)
	model func(m model, nowMS int64) any
}

func (w *walker) operation() randomOp {
	switch w.rnd.IntN(15) {
	case 0, 1:
		return w.scheduling()
	case 2:
		return w.cancelling()
	case 3, 4, 5:
		return w.claiming()
	case 6:
		return w.acking()
	case 7, 8:
		return w.retrying()
	case 9:
		return w.burying()
	case 10:
		return w.renewing()
	case 11:
		return w.requeueing()
	case 12:
		return w.discarding()
	case 13:
		return w.ensuring()
	default:
		return w.reaping()
	}
}

// batch is a few ids; some stand in it twice.
func (w *walker) batch() []string {
	list := make([]string, 1+w.rnd.IntN(6))
	for i := range list {
		list[i] = w.ids[w.rnd.IntN(len(w.ids))]
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

// leases names a few ids, and mostly the tokens that they run under.
func (w *walker) leases() (list []persist.Lease) {
	for _, id := range w.batch() {
		l := persist.Lease{ID: id, Token: w.tokens[w.rnd.IntN(len(w.tokens))]}
		if e := w.model[id]; e.token != "" && w.rnd.IntN(4) > 0 {
			l.Token = e.token
		}
		list = append(list, l)
	}
	return list
}

// leaseMS is soon over, or never.
func (w *walker) leaseMS() int64 { return []int64{1, 3, 3_600_000}[w.rnd.IntN(3)] }

func (w *walker) scheduling() randomOp {
	var list []persist.Due
	for _, id := range w.batch() {
		list = append(list, persist.Due{ID: id, DueMS: w.dueMS()})
	}
	return randomOp{
		name:  fmt.Sprintf("schedule %+v", list),
		store: func() (any, error) { return nil, w.Schedule(w.ctx, list) },
		model: func(m model, _ int64) any {
			for _, d := range list {
				m.schedule(d)
			}
			return nil
		},
	}
}

func (w *walker) cancelling() randomOp {
	list := w.batch()
	return randomOp{
		name:  fmt.Sprintf("cancel %q", list),
		store: func() (any, error) { return w.Cancel(w.ctx, list) },
		model: func(m model, _ int64) any { return all(list, m.cancel) },
	}
}

func (w *walker) claiming() randomOp {
	list, leaseMS := w.batch(), w.leaseMS()
	most := []int{0, 0, 1, 2, 3}[w.rnd.IntN(5)]
	token := w.tokens[w.rnd.IntN(len(w.tokens))]
	if w.rnd.IntN(4) > 0 {
		token = fmt.Sprintf("tok%d", len(w.tokens))
		w.tokens = append(w.tokens, token)
	}
	type answer struct {
		claims []persist.Claim
		nowMS  int64
	}
	return randomOp{
		name: fmt.Sprintf("claim %s %q for %d ms, at most %d attempts", token, list, leaseMS, most),
		store: func() (any, error) {
			claims, err := w.Claim(w.ctx, token, list, time.Duration(leaseMS)*time.Millisecond, most)
			return answer{claims.Claims, claims.NowMS}, err
		},
		model: func(m model, nowMS int64) any {
			return answer{all(list, func(id string) persist.Claim { return m.claim(id, token, nowMS, leaseMS, most) }), nowMS}
		},
	}
}

func (w *walker) acking() randomOp {
	list := w.leases()
	return randomOp{
		name:  fmt.Sprintf("ack %+v", list),
		store: func() (any, error) { return w.Ack(w.ctx, list) },
		model: func(m model, _ int64) any { return all(list, m.ack) },
	}
}

func (w *walker) retrying() randomOp {
	var list []persist.Retry
	for _, l := range w.leases() {
		list = append(list, persist.Retry{Lease: l, DueMS: w.dueMS(), Uncounted: w.rnd.IntN(3) == 0, Abandoned: w.rnd.IntN(4) == 0})
	}
	return randomOp{
		name:  fmt.Sprintf("retry %+v", list),
		store: func() (any, error) { return w.Retry(w.ctx, list) },
		model: func(m model, _ int64) any { return all(list, m.retry) },
	}
}

func (w *walker) burying() randomOp {
	var list []persist.Burial
	for i, l := range w.leases() {
		list = append(list, persist.Burial{Lease: l, Reason: fmt.Sprintf("reason\x00%d \xff", i)})
	}
	return randomOp{
		name:  fmt.Sprintf("bury %+v", list),
		store: func() (any, error) { return w.Bury(w.ctx, list) },
		model: func(m model, nowMS int64) any {
			return all(list, func(b persist.Burial) persist.Settlement { return m.bury(b, nowMS) })
		},
	}
}

func (w *walker) renewing() randomOp {
	list, leaseMS := w.leases(), w.leaseMS()
	return randomOp{
		name:  fmt.Sprintf("renew %+v for %d ms", list, leaseMS),
		store: func() (any, error) { return w.Renew(w.ctx, list, time.Duration(leaseMS)*time.Millisecond) },
		model: func(m model, nowMS int64) any {
			return all(list, func(l persist.Lease) bool { return m.renew(l, nowMS, leaseMS) })
		},
	}
}

func (w *walker) reaping() randomOp {
	limit := 1 + w.rnd.IntN(5)
	return randomOp{
		name: fmt.Sprintf("reap %d", limit),
		store: func() (any, error) {
			list, err := w.Reap(w.ctx, limit)
			return append([]persist.Due{}, list...), err
		},
		model: func(m model, nowMS int64) any { return append([]persist.Due{}, m.reap(nowMS, limit)...) },
	}
}

func (w *walker) requeueing() randomOp {
	list := w.batch()
	return randomOp{
		name:  fmt.Sprintf("requeue %q", list),
		store: func() (any, error) { return w.Requeue(w.ctx, list) },
		model: func(m model, nowMS int64) any {
			return all(list, func(id string) persist.Settlement { return m.requeue(id, nowMS) })
		},
	}
}

func (w *walker) discarding() randomOp {
	list := w.batch()
	return randomOp{
		name:  fmt.Sprintf("discard %q", list),
		store: func() (any, error) { return w.Discard(w.ctx, list) },
		model: func(m model, _ int64) any { return all(list, m.discard) },
	}
}

func (w *walker) ensuring() randomOp {
	var list []persist.Due
	for _, id := range w.batch() {
		list = append(list, persist.Due{ID: id, DueMS: w.dueMS()})
	}
	return randomOp{
		name:  fmt.Sprintf("ensure %+v", list),
		store: func() (any, error) { return w.Ensure(w.ctx, list) },
		model: func(m model, _ int64) any { return all(list, m.ensure) },
	}
}

// all asks for each of a list, in order.
func all[Q, A any](list []Q, ask func(Q) A) []A {
	answers := make([]A, 0, len(list))
	for _, q := range list {
		answers = append(answers, ask(q))
	}
	return answers
}

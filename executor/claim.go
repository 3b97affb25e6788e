package executor

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/orderwheel/orderwheel/internal/arming"
	"github.com/orderwheel/orderwheel/persist"
)

// claimLoop takes as many ready ids as there are free workers, so that no lease
// ages in a queue, claims them in one call and hands them to the pool.
func (e *Executor) claimLoop() {
	for {
		batch, stopping := e.take()
		if stopping {
			return
		}
		if len(batch) == 0 {
			<-e.claimWake
			continue
		}
		e.claim(batch)
	}
}

// take moves ids from the ready lists to work: at most as many as workers are
// free. While both lists wait, each gives half.
func (e *Executor) take() (batch []*task, stopping bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.mu.stopping {
		return nil, true
	}
	n := min(e.freeLocked(), e.cfg.Workers*max(unsettledPerWorker, e.size)-e.mu.unsettled, persist.MaxBatch)
	for len(batch) < n {
		q := &e.mu.fresh
		if q.len() == 0 || e.mu.backlog.len() > 0 && len(batch)%2 == 1 {
			q = &e.mu.backlog
		}
		if q.len() == 0 {
			break
		}
		t := q.pop()
		t.stage = claiming
		batch = append(batch, t)
	}
	e.mu.running += len(batch)
	return batch, false
}

// claim asks the store for batch until it is answered, and acts on each answer.
// When Stop gives up waiting, what has no answer stays in the stage claiming: Stop hands
// it back by its token.
//
// A store of several shards may answer a part: a shard is away, or broken. What is
// missing then must not hold up the rest, nor keep workers: it comes again in a
// moment. If its claim was made all the same, it is busy until that lease is over.
func (e *Executor) claim(batch []*task) {
	ids := make([]string, len(batch))
	for i, t := range batch {
		ids[i] = t.id
	}
	ticket := e.cfg.Board.Ask()
	defer e.cfg.Board.End(ticket)
	// One token for one claim of the batch, also when it is repeated: the store
	// knows its own claim again, so a repetition never finds its ids busy by
	// itself.
	token := rand.Text()
	for _, t := range batch {
		t.token = token
	}
	for {
		ctx, cancel := e.patient(e.ctx)
		claims, err := e.cfg.Store.Claim(ctx, token, ids, e.cfg.Lease, e.cfg.Backoff.limit())
		cancel()
		missing := persist.Missing(err, len(batch))
		if e.ctx.Err() != nil && len(missing) == len(batch) {
			return
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) { // of that the store has told
			e.cfg.Logger.Error("claim_failed", slog.Int("ids", len(missing)), slog.Any("error", err))
		}
		if len(missing) < len(batch) || e.cfg.Patience > 0 {
			e.claimed(ticket, token, batch, claims, missing)
			return
		}
		rest(e.ctx)
	}
}

// claimed acts on the answers to a claim.
func (e *Executor) claimed(ticket arming.Ticket, token string, batch []*task, claims persist.Claims, missing []int) {
	if len(missing) < len(batch) {
		e.cfg.Observe(claims.Clock)
	}
	var claimed []*task
	for i, t := range batch {
		if _, none := slices.BinarySearch(missing, i); none {
			if e.ctx.Err() != nil {
				continue
			}
			e.cfg.Board.Arm(ticket, t.id, e.cfg.NowMS()+pause.Milliseconds())
			e.drop(batch[i : i+1])
			continue
		}
		c := claims.Claims[i]
		if c.State == persist.Claimed {
			t.attempt, t.firstMS = c.Attempt, c.FirstDueMS
			t.nowMS = max(claims.NowMS, c.FirstDueMS) // its own shard's clock may be ahead of that one
			t.lease = claims.Sent.Add(e.cfg.Lease)
			claimed = append(claimed, t)
			continue
		}
		switch c.State {
		case persist.NotYet:
			// By the time left as the store's clock told it: a local estimate
			// that runs ahead would otherwise ask again at once, and again.
			e.stats.notYet.Add(1)
			e.cfg.Board.Arm(ticket, t.id, max(c.DueMS, e.cfg.NowMS()+c.LeftMS))
		case persist.Busy:
			e.stats.busy.Add(1)
		case persist.Buried:
			e.buriedByClaim(t)
		default:
			e.stats.gone.Add(1)
		}
		e.drop(batch[i : i+1])
	}
	e.submit(claimed)
}

// drop lets go of tasks that did not come to run, and of the workers spoken for.
func (e *Executor) drop(batch []*task) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.running -= len(batch)
	for _, t := range batch {
		e.releaseLocked(t)
	}
	e.idleLocked()
}

// patient bounds a call of the store, where it may be answered in part.
func (e *Executor) patient(ctx context.Context) (context.Context, context.CancelFunc) {
	if e.cfg.Patience == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, e.cfg.Patience)
}

func rest(ctx context.Context) {
	select {
	case <-time.After(pause):
	case <-ctx.Done():
	}
}

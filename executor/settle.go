package executor

import (
	"context"
	"log/slog"

	"github.com/orderwheel/orderwheel/internal/arming"
	"github.com/orderwheel/orderwheel/persist"
)

// settleLoop tells the store what became of the finished tasks: while one batch
// is on its way the next gathers. It ends when Stop has nothing left to settle,
// or gives up.
func (e *Executor) settleLoop() {
	for {
		batch, over := e.takeFinished()
		if over {
			return
		}
		if len(batch) > 0 {
			if !e.settle(e.ctx, batch) {
				return
			}
			continue
		}
		select {
		case <-e.settleWake:
		case <-e.ctx.Done():
			return
		}
	}
}

func (e *Executor) takeFinished() (batch []*task, over bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	batch = e.mu.finished
	e.mu.finished = nil
	return batch, len(batch) == 0 && e.idleLocked()
}

// settle acks and retries a batch, and acts on the answers; false when ctx
// ended first.
func (e *Executor) settle(ctx context.Context, batch []*task) bool {
	ticket := e.cfg.Board.Ask()
	defer e.cfg.Board.End(ticket)
	var acked, retried []*task
	var acks []persist.Lease
	var retries []persist.Retry
	for _, t := range batch {
		if t.outcome.kind == done {
			acked, acks = append(acked, t), append(acks, persist.Lease{ID: t.id, Token: t.token})
		} else {
			retried, retries = append(retried, t), append(retries, e.retryOf(t))
		}
	}
	return e.settleAll(ctx, ticket, acked, func() ([]persist.Settlement, error) { return e.cfg.Store.Ack(ctx, acks) }) &&
		e.settleAll(ctx, ticket, retried, func() ([]persist.Settlement, error) { return e.cfg.Store.Retry(ctx, retries) })
}

func (e *Executor) retryOf(t *task) persist.Retry {
	r := persist.Retry{Lease: persist.Lease{ID: t.id, Token: t.token}, DueMS: t.outcome.atMS}
	switch t.outcome.kind {
	case postpone:
		r.Uncounted = true
	case handBack:
		r.DueMS, r.Uncounted = t.firstMS, true
	case cutOff:
		r.DueMS, r.Abandoned = e.cfg.NowMS(), true
	}
	// The store refuses a batch as a whole if one time in it cannot be held.
	r.DueMS = min(max(r.DueMS, 0), persist.MaxDueMS)
	return r
}

// settleAll makes one call until it is answered.
func (e *Executor) settleAll(ctx context.Context, ticket arming.Ticket, tasks []*task, call func() ([]persist.Settlement, error)) bool {
	if len(tasks) == 0 {
		return true
	}
	answers, err := call()
	for err != nil {
		if ctx.Err() != nil {
			return false
		}
		e.cfg.Logger.Error("settle_failed", slog.Int("ids", len(tasks)), slog.Any("error", err))
		rest(ctx)
		answers, err = call()
	}
	for i, a := range answers {
		e.settled(ticket, tasks[i], a)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.unsettled -= len(tasks)
	for _, t := range tasks {
		if t.outcome.kind != cutOff {
			e.releaseLocked(t)
		}
	}
	e.idleLocked()
	wake(e.claimWake)
	return true
}

// settled acts on the store's answer for one task.
func (e *Executor) settled(ticket arming.Ticket, t *task, a persist.Settlement) {
	switch {
	case a.State == persist.Refused:
		e.stats.leaseLost.Add(1)
		e.cfg.Logger.Warn("lease_lost", slog.String("id", t.id), slog.Int("attempt", t.attempt))
		return
	case t.outcome.kind == done:
		e.stats.done.Add(1)
	case a.State == persist.Settled: // a cancel had the last word
		e.stats.cancelled.Add(1)
	case t.outcome.kind == retryLater:
		e.stats.retried.Add(1)
	case t.outcome.kind == postpone:
		e.stats.postponed.Add(1)
	}
	if a.State == persist.Scheduled {
		e.cfg.Board.Arm(ticket, t.id, a.DueMS)
	}
}

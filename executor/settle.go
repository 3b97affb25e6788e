package executor

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

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
			e.settle(e.ctx, batch)
			if e.ctx.Err() != nil {
				return
			}
			continue
		}
		select {
		case <-e.settleWake:
			e.gather()
		case <-e.ctx.Done():
			return
		}
	}
}

const (
	// gatherFor is how long a finished task waits for others at most.
	gatherFor = time.Millisecond
	// gatherMost is how many do not wait for more.
	gatherMost = 500
)

// gather waits for a moment while more tasks may finish: one call of the store for many costs
// little more than one for one.
func (e *Executor) gather() {
	timer := time.NewTimer(gatherFor)
	defer timer.Stop()
	for e.gathers() {
		select {
		case <-e.settleWake:
		case <-timer.C:
			return
		case <-e.ctx.Done():
			return
		}
	}
}

func (e *Executor) gathers() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.gatherLocked()
}

// gatherLocked reports whether the finished tasks should wait for others.
func (e *Executor) gatherLocked() bool {
	return !e.mu.stopping && e.mu.running > 0 && len(e.mu.finished) < gatherMost
}

func (e *Executor) takeFinished() (batch []*task, over bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	batch = e.mu.finished
	e.mu.finished = nil
	if len(e.mu.apart) > 0 {
		batch = slices.DeleteFunc(batch, e.joinsApartLocked)
	}
	e.mu.settlingAt = time.Time{}
	if len(batch) > 0 {
		e.mu.settlingAt = time.Now()
	}
	return batch, len(batch) == 0 && e.idleLocked()
}

// settle tells the store of a batch, and acts on the answers. What the kinds of
// ends need is asked at once: a call that has to wait for a shard holds up no other.
// What has no answer then is asked for apart, or in finished again where ctx has ended.
func (e *Executor) settle(ctx context.Context, batch []*task) {
	ticket := e.cfg.Board.Ask()
	defer e.cfg.Board.End(ticket)
	var acked, buried, retried []*task
	for _, t := range batch {
		switch t.outcome.kind {
		case done:
			acked = append(acked, t)
		case bury:
			buried = append(buried, t)
		default:
			retried = append(retried, t)
		}
	}
	var asked sync.WaitGroup
	for _, one := range []struct {
		tasks []*task
		ask   settleCall
	}{{acked, e.ack}, {buried, e.bury}, {retried, e.retry}} {
		if len(one.tasks) > 0 {
			asked.Go(func() { e.settleAll(ctx, ticket, one.tasks, one.ask) })
		}
	}
	asked.Wait()
}

// settleCall asks the store to end the runs of tasks.
type settleCall func(ctx context.Context, tasks []*task) ([]persist.Settlement, error)

func (e *Executor) ack(ctx context.Context, tasks []*task) ([]persist.Settlement, error) {
	leases := make([]persist.Lease, len(tasks))
	for i, t := range tasks {
		leases[i] = persist.Lease{ID: t.id, Token: t.token}
	}
	return e.cfg.Store.Ack(ctx, leases)
}

func (e *Executor) bury(ctx context.Context, tasks []*task) ([]persist.Settlement, error) {
	burials := make([]persist.Burial, len(tasks))
	for i, t := range tasks {
		burials[i] = persist.Burial{Lease: persist.Lease{ID: t.id, Token: t.token}, Reason: t.outcome.reason}
	}
	return e.cfg.Store.Bury(ctx, burials)
}

func (e *Executor) retry(ctx context.Context, tasks []*task) ([]persist.Settlement, error) {
	retries := make([]persist.Retry, len(tasks))
	for i, t := range tasks {
		retries[i] = e.retryOf(t)
	}
	return e.cfg.Store.Retry(ctx, retries)
}

func (e *Executor) retryOf(t *task) persist.Retry {
	r := persist.Retry{Lease: persist.Lease{ID: t.id, Token: t.token}, DueMS: t.outcome.atMS}
	switch t.outcome.kind {
	case postpone:
		r.Uncounted = true
	case handBack:
		r.Uncounted = true
		if t.attempt > 0 { // else its claim has no answer
			r.DueMS = t.firstMS
		}
	case cutOff:
		r.DueMS, r.Abandoned = e.cfg.NowMS(), true
	}
	// The store refuses a batch as a whole if one time in it cannot be held.
	r.DueMS = min(max(r.DueMS, 0), persist.MaxDueMS)
	return r
}

// settleAll asks until tasks are answered, or ctx has ended. Where some are, or there are
// several shards, those without an answer are asked for apart.
func (e *Executor) settleAll(ctx context.Context, ticket arming.Ticket, tasks []*task, ask settleCall) {
	for {
		askCtx, cancel := e.patient(ctx)
		answers, err := ask(askCtx, tasks)
		cancel()
		missing := persist.Missing(err, len(tasks))
		if ctx.Err() != nil && len(missing) == len(tasks) {
			e.unfinished(tasks)
			return
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) { // of that the store has told
			e.cfg.Logger.Error("settle_failed", slog.Int("ids", len(missing)), slog.Any("error", err))
		}
		if len(missing) < len(tasks) || e.cfg.Patience > 0 {
			e.answered(ticket, tasks, answers, missing)
			return
		}
		rest(ctx, pause)
	}
}

// answered acts on the answers for tasks, and keeps those that have none for later.
func (e *Executor) answered(ticket arming.Ticket, tasks []*task, answers []persist.Settlement, missing []int) {
	var settled, later []*task
	for i, t := range tasks {
		if _, none := slices.BinarySearch(missing, i); none {
			later = append(later, t)
			continue
		}
		e.settled(ticket, t, answers[i])
		settled = append(settled, t)
	}
	e.release(settled)
	if len(later) > 0 {
		e.askApart(later)
	}
}

// unfinished puts tasks back among those that the store does not know of.
func (e *Executor) unfinished(tasks []*task) {
	e.mu.Lock()
	e.mu.finished = append(tasks, e.mu.finished...)
	e.mu.Unlock()
	wake(e.settleWake)
}

// release lets go of tasks that are settled.
func (e *Executor) release(tasks []*task) {
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
}

// settled acts on the store's answer for one task.
func (e *Executor) settled(ticket arming.Ticket, t *task, a persist.Settlement) {
	switch {
	case a.State == persist.Refused && t.attempt == 0: // its claim has no answer, and was not made
		return
	case a.State == persist.Refused:
		e.loseLease(t)
		return
	case t.outcome.kind == done:
		e.stats.done.Add(1)
	case t.outcome.kind == bury && a.State == persist.Settled:
		e.buried(Dead{
			ID: t.id, Due: time.UnixMilli(t.firstMS), Attempt: t.attempt,
			Reason: t.outcome.reason, Err: t.outcome.err,
		})
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

func (e *Executor) loseLease(t *task) {
	e.stats.leaseLost.Add(1)
	e.cfg.Logger.Warn("lease_lost", slog.String("id", t.id), slog.Int("attempt", t.attempt))
}

// buried counts and tells that the store has buried a task.
func (e *Executor) buried(d Dead) {
	e.stats.dead.Add(1)
	attrs := []slog.Attr{slog.String("id", d.ID), slog.Int("attempt", d.Attempt), slog.String("reason", d.Reason)}
	e.cfg.Logger.LogAttrs(context.Background(), slog.LevelError, "dead", append(attrs, stackOf(d.Err)...)...)
	e.alarms.tell(d)
}

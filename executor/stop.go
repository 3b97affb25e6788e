package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/panjf2000/ants/v2"
)

// lastWord is how long Stop goes on beyond its ctx: to hand unfinished leases back, and
// with what has been told that its time is over.
const lastWord = time.Second

// Stop ends the claiming at once: what is in the ready lists stays in the
// store. It waits until the running handlers have returned and every ack is
// answered, and returns nil.
//
// When ctx ends first, the ctx of every running handler is cancelled, their
// leases are handed back so that another instance can run them at once, and
// Stop returns an error that wraps ctx's. A claim that has no answer by then is handed
// back, too, by its token: at once and uncounted, as if it had not been made. A later Stop waits for the handlers
// that are still at work. Stop is not for concurrent use with itself. Within a
// handler it would wait for that very handler, until ctx ends.
func (e *Executor) Stop(ctx context.Context) error {
	e.mu.Lock()
	e.mu.stopping = true
	e.mu.fresh, e.mu.backlog = queue{}, queue{}
	e.mu.waits, e.mu.claimed = queue{}, nil
	for _, t := range e.mu.held {
		switch t.stage {
		case ready, aside:
			e.releaseLocked(t)
		case granted:
			e.handBackLocked(t)
		}
	}
	e.idleLocked()
	e.mu.Unlock()
	wake(e.claimWake)
	wake(e.settleWake)

	var err error
	select {
	case <-e.idle:
	case <-ctx.Done():
		err = e.abandon(ctx)
	}
	e.giveUp()
	e.loops.Wait()
	if !e.alarms.stop(ctx) {
		err = errors.Join(err, fmt.Errorf("executor: OnDead has not returned: %w", ctx.Err()))
	}
	return errors.Join(err, e.releasePool(ctx, err == nil))
}

// abandon ends all waiting: it cancels the handlers, and in one last call
// settles what has finished and hands back what has not.
func (e *Executor) abandon(ctx context.Context) error {
	e.giveUp()
	e.loops.Wait() // the loops' tasks are ours now
	lastCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWord)
	defer cancel()
	e.settle(lastCtx, e.takeAll())

	e.mu.Lock()
	defer e.mu.Unlock()
	untold := len(e.mu.finished)
	for _, t := range e.mu.finished {
		if t.outcome.kind != cutOff {
			e.releaseLocked(t)
		}
	}
	e.mu.unsettled, e.mu.finished = 0, nil
	if e.idleLocked() && untold == 0 {
		return nil // the last handler returned meanwhile
	}
	if untold > 0 {
		return fmt.Errorf("executor: the store did not take the last %d answers; their leases will run out: %w", untold, ctx.Err())
	}
	return fmt.Errorf("executor: %d handlers are still running: %w", len(e.mu.calls), ctx.Err())
}

// takeAll takes everything that the store may count as ours: what has finished; what is
// with a handler, or would be in a moment; and what was asked for in a claim that has
// no answer, which the store may have made all the same.
func (e *Executor) takeAll() []*task {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := e.mu.finished
	e.mu.finished = nil
	take := func(t *task, o outcome) {
		t.outcome = o
		e.mu.unsettled++
		all = append(all, t)
	}
	for c := range e.mu.calls {
		if c.abandoned || c.alone != nil {
			continue
		}
		c.abandoned = true
		for _, t := range c.tasks {
			switch {
			case t.lost: // nothing of it is ours
			case c.ctx == nil:
				take(t, outcome{kind: handBack})
			default:
				take(t, outcome{kind: cutOff})
			}
		}
	}
	for _, t := range e.mu.held {
		if t.stage == claiming {
			if t.worker {
				t.worker = false
				e.mu.running--
			}
			t.stage = finished
			take(t, outcome{kind: handBack, atMS: t.dueMS})
		}
	}
	return all
}

// releasePool ends the pool's goroutines; it waits for them only where no
// handler is at work.
func (e *Executor) releasePool(ctx context.Context, wait bool) error {
	if e.pool == nil {
		return nil
	}
	if !wait {
		e.pool.Release()
		return nil
	}
	poolCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWord)
	defer cancel()
	if err := e.pool.ReleaseContext(poolCtx); err != nil && !errors.Is(err, ants.ErrPoolClosed) {
		return fmt.Errorf("executor: releasing the pool: %w", err)
	}
	return nil
}

package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/panjf2000/ants/v2"
)

// lastWord is how long Stop tries, beyond its ctx, to hand unfinished leases back.
const lastWord = time.Second

// Stop ends the claiming at once: what is in the ready lists stays in the
// store. It waits until the running handlers have returned and every ack is
// answered, and returns nil.
//
// When ctx ends first, the ctx of every running handler is cancelled, their
// leases are handed back so that another instance can run them at once, and
// Stop returns an error that wraps ctx's. A later Stop waits for the handlers
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
	return errors.Join(err, e.releasePool(ctx, err == nil))
}

// abandon ends all waiting: it cancels the handlers, and in one last call
// settles what has finished and hands back what has not.
func (e *Executor) abandon(ctx context.Context) error {
	e.giveUp()
	e.loops.Wait() // the loops' tasks are ours now

	e.mu.Lock()
	var last []*task
	stuck := 0
	for _, t := range e.mu.held {
		if t.runsAlone() {
			stuck++
		}
		switch {
		case t.abandoned:
			stuck++
		case t.stage == running:
			stuck++
			t.abandoned, t.outcome = true, outcome{kind: cutOff}
			e.mu.unsettled++
			last = append(last, t)
		case t.stage == finished:
			last = append(last, t)
		}
	}
	e.mu.finished = nil
	e.mu.Unlock()

	lastCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWord)
	defer cancel()
	settled := e.settle(lastCtx, last)

	e.mu.Lock()
	defer e.mu.Unlock()
	settled = settled && len(e.mu.finished) == 0 // else a part has no answer
	e.mu.unsettled = 0
	if e.idleLocked() && settled {
		return nil // the last handler returned meanwhile
	}
	if !settled {
		return fmt.Errorf("executor: the store did not take the last %d answers; their leases will run out: %w", len(last), ctx.Err())
	}
	return fmt.Errorf("executor: %d handlers are still running: %w", stuck, ctx.Err())
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

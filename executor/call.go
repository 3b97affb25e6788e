package executor

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// call is one call of a handler, and what occupies one worker: one task, or with a
// BatchHandler up to BatchSize of them: of one claim, or such as had to wait for a worker
// when their claims were answered. A run without a claim is a call, too: see alone.
//
//	submitted -> at work -> over
//	    |           |  ctx has ended, and the lease: stuck, its worker replaced or not
//	    +-----------+--> abandoned: Stop gave up
//
// All but tasks is guarded by Executor.mu.
type call struct {
	tasks []*task
	alone *task // whose run without a claim it is; nil: its tasks are claimed

	ctx     *handlerCtx // nil before it is at work
	begun   time.Time   // when that was
	lease   time.Time   // when the first of its leases ends, as far as is known here; see beginAlone
	renewAt time.Time   // when to ask for a longer one

	stuck     bool // its leases are over and its handler has not returned; so nothing it says counts
	replaced  bool // stuck, and another may work in its stead
	abandoned bool // Stop has handed its leases back: its end changes nothing
}

// callLocked makes the call of tasks, which are claimed: at most as many as a call takes,
// and there is a worker for it.
func (e *Executor) callLocked(tasks []*task) *call {
	c := &call{tasks: tasks, lease: tasks[0].lease}
	for _, t := range tasks {
		t.stage = running
		if t.lease.Before(c.lease) {
			c.lease = t.lease
		}
	}
	e.mu.running += len(tasks)
	e.mu.spare += e.size - len(tasks)
	e.mu.calls[c] = struct{}{}
	return c
}

// submit hands a call to the pool. What the pool refuses, or came after Stop, goes back
// to the store.
func (e *Executor) submit(c *call) {
	e.mu.Lock()
	stopping := e.mu.stopping
	e.mu.Unlock()
	if stopping || e.pool.Submit(func() { e.work(c) }) != nil {
		e.finish(c, sameFor(c, outcome{kind: handBack}), false)
	}
}

// freeLocked is how many tasks the free workers could take.
func (e *Executor) freeLocked() int { return e.cfg.Workers*e.size - e.mu.running - e.mu.spare }

// begin gives the handler's ctx, which is to be ended. It answers false when the handler
// must not be called any more: the claim's answer, or this process, was held up for so
// long that a task may be another's by now, or cancelled; or Stop has given up.
func (e *Executor) begin(c *call) (ctx *handlerCtx, ok bool) {
	now := time.Now()
	ctx = e.newCtx(now)
	e.mu.Lock()
	defer e.mu.Unlock()
	if c.abandoned || e.ctx.Err() != nil || !now.Before(c.lease) {
		return ctx, false
	}
	c.ctx, c.begun = ctx, now
	c.renewAt = c.lease.Add(-2 * e.cfg.Lease / 3)
	if c.lease.Sub(now) < e.cfg.Lease/2 {
		wake(e.leaseWake) // sooner than the keeper looks by itself
	}
	return ctx, true
}

// newCtx is the ctx of a handler that begins now.
func (e *Executor) newCtx(now time.Time) *handlerCtx {
	return &handlerCtx{parent: e.ctx, deadline: now.Add(e.cfg.HandlerTimeout)}
}

// handle calls the handler: an error for each task of c.
func (e *Executor) handle(ctx context.Context, c *call) []error {
	if e.cfg.Handler != nil {
		return []error{e.cfg.Handler(ctx, c.tasks[0].public())}
	}
	list := make([]Task, len(c.tasks))
	for i, t := range c.tasks {
		list[i] = t.public()
	}
	errs := e.cfg.BatchHandler(ctx, list)
	if len(errs) != len(c.tasks) {
		return sameFor(c, fmt.Errorf("executor: BatchHandler returned %d errors for %d tasks", len(errs), len(c.tasks)))
	}
	return errs
}

// public is t as its handler sees it.
func (t *task) public() Task {
	return Task{
		ID:        t.id,
		Due:       time.UnixMilli(t.firstMS),
		Attempt:   t.attempt,
		Now:       time.UnixMilli(t.nowMS),
		Source:    t.source,
		Unclaimed: t.unclaimed,
	}
}

// finish passes the tasks of a call from its worker to the settler. It returns what the
// worker is to do next, if that goes on; nil: nothing, or another worker is there in
// its stead.
func (e *Executor) finish(c *call, outcomes []outcome, goesOn bool) (next *call) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c.ctx != nil {
		e.paceLocked(time.Since(c.begun))
	}
	e.overLocked(c)
	first := len(e.mu.finished) == 0 // else somebody has woken the settler
	for i, t := range c.tasks {
		if c.abandoned || t.lost {
			e.releaseLocked(t)
			continue
		}
		t.stage, t.outcome = finished, outcomes[i]
		e.mu.finished = append(e.mu.finished, t)
		e.mu.unsettled++
	}
	if goesOn && !c.replaced && !e.mu.stopping && e.freeLocked() >= e.size {
		next = e.nextLocked()
	}
	e.idleLocked()
	if next == nil || e.lowLocked() {
		wake(e.claimWake)
	}
	if first || !e.gatherLocked() {
		wake(e.settleWake)
	}
	return next
}

// overLocked lets go of a call whose handler has returned, and of its worker.
func (e *Executor) overLocked(c *call) {
	delete(e.mu.calls, c)
	if c.replaced {
		e.mu.extra--
	} else {
		e.vacateLocked(c)
	}
	if c.stuck {
		e.mu.stuck--
	}
	if e.mu.stuck > e.mu.extra { // one more that is stuck may be replaced now
		wake(e.leaseWake)
	}
}

// vacateLocked makes c's worker free.
func (e *Executor) vacateLocked(c *call) {
	e.mu.running -= len(c.tasks)
	e.mu.spare -= e.size - len(c.tasks)
}

// sameFor is v for each task of c.
func sameFor[T any](c *call, v T) []T {
	return slices.Repeat([]T{v}, len(c.tasks))
}

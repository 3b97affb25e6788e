package executor

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/orderwheel/orderwheel/persist"
)

// leaseLoop keeps the leases of handlers that run long. It asks for a longer lease
// when a third of one has passed, as long as the handler's ctx lives; it ends the ctx
// of a handler whose lease is about to end, or was refused; and it replaces the
// worker of one that has not returned when its lease is over.
//
// It looks at each sixth of a lease, and whenever something is to be done, so a
// handler that ends sooner than a third of its lease costs nothing here.
func (e *Executor) leaseLoop() {
	for {
		look := e.lookAtLeases(time.Now())
		for _, ctx := range look.cut {
			ctx.end(ErrLeaseLost)
		}
		if len(look.renew) > 0 {
			e.loops.Go(func() { e.renew(look.renew) })
		}
		if look.replaced {
			wake(e.claimWake)
		}
		select {
		case <-time.After(look.next):
		case <-e.leaseWake:
		case <-e.ctx.Done():
			return
		}
	}
}

// look is what is to be done about the calls at work.
type look struct {
	cut      []*handlerCtx // their lease is about to end
	renew    []renewal
	replaced bool          // a worker was
	next     time.Duration // until the next look
}

// renewal is one task whose lease is to be renewed.
type renewal struct {
	call *call
	task *task
}

// leaseMargin is how much sooner than its lease a handler's ctx ends, and how long
// looks are apart at least.
func (e *Executor) leaseMargin() time.Duration {
	return max(min(e.cfg.Lease/100, 10*time.Millisecond), time.Millisecond)
}

// lookAtLeases goes through the calls at work.
func (e *Executor) lookAtLeases(now time.Time) look {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.handBackAgedLocked(now)
	l := look{next: e.cfg.Lease / 6}
	margin := e.leaseMargin()
	at := func(when time.Time) { l.next = min(l.next, when.Sub(now)) }
	for c := range e.mu.calls {
		if c.ctx == nil || c.stuck && c.replaced {
			continue
		}
		alive := !c.ctx.ended(now)
		if alive && c.lease.Sub(now) <= margin {
			l.cut = append(l.cut, c.ctx)
			alive = false
		}
		if !now.Before(c.lease) {
			l.replaced = e.giveUpLocked(c) || l.replaced
			continue
		}
		at(c.lease)
		if !alive {
			continue
		}
		at(c.lease.Add(-margin))
		if e.mu.renewing || !c.wantsRenewal(e.cfg.Lease) {
			continue
		}
		if now.Before(c.renewAt.Add(-margin)) {
			at(c.renewAt)
			continue
		}
		c.renewAt = now.Add(e.cfg.Lease / 6) // should this one have no answer
		for _, t := range c.tasks {
			l.renew = append(l.renew, renewal{c, t})
		}
	}
	e.mu.renewing = e.mu.renewing || len(l.renew) > 0
	l.next = max(l.next, margin)
	return l
}

// wantsRenewal reports whether c's lease ends before its handler's time is up; then
// it should last for a little more, so that what came of it can be told.
func (c *call) wantsRenewal(lease time.Duration) bool {
	return c.lease.Before(c.ctx.deadline.Add(lease / 3))
}

// giveUpLocked is for a call whose lease is over while its handler is at work. Its tasks
// may run elsewhere, and here too when the reaper brings them back, so they are
// held no more; a run without a claim counts as ended. Another may work in its stead, but
// not without bound.
func (e *Executor) giveUpLocked(c *call) (replaced bool) {
	if !c.stuck {
		c.stuck = true
		e.mu.stuck++
		if c.alone != nil {
			e.aloneOverLocked(c.alone, outcome{kind: cutOff})
		} else {
			for _, t := range c.tasks {
				e.releaseLocked(t)
			}
		}
	}
	if e.mu.extra == e.cfg.Workers || c.abandoned {
		return false
	}
	c.replaced = true
	e.mu.extra++
	e.vacateLocked(c)
	return true
}

// renew asks the store once for longer leases.
func (e *Executor) renew(asked []renewal) {
	leases := make([]persist.Lease, len(asked))
	for i, r := range asked {
		leases[i] = persist.Lease{ID: r.task.id, Token: r.task.token}
	}
	ctx, cancel := context.WithTimeout(e.ctx, max(e.cfg.Lease/6, time.Millisecond))
	defer cancel()
	sent := time.Now()
	held, err := e.cfg.Store.Renew(ctx, leases, e.cfg.Lease)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) && e.ctx.Err() == nil { // of that the store has told
		e.cfg.Logger.Error("renew_failed", slog.Int("ids", len(leases)), slog.Any("error", err))
	}
	for _, r := range e.renewed(asked, held, persist.Missing(err, len(asked)), sent.Add(e.cfg.Lease)) {
		e.loseLease(r.task)
		r.call.ctx.end(ErrLeaseLost)
	}
	wake(e.leaseWake)
}

// renewed acts on the answers: a lease holds until then, or is lost. It returns the
// latter.
func (e *Executor) renewed(asked []renewal, held []bool, missing []int, until time.Time) (lost []renewal) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.renewing = false
	longer := map[*call]bool{} // whether all of its tasks are held
	for i, r := range asked {
		if _, atWork := e.mu.calls[r.call]; !atWork || r.call.abandoned {
			continue // what came of it may have reached the store before
		}
		_, none := slices.BinarySearch(missing, i)
		if !none && !held[i] {
			r.task.lost = true
			lost = append(lost, r)
		}
		if all, seen := longer[r.call]; all || !seen {
			longer[r.call] = !none && held[i]
		}
	}
	for c, all := range longer {
		if all && !c.stuck {
			c.lease, c.renewAt = until, until.Add(-2*e.cfg.Lease/3)
		}
	}
	return lost
}

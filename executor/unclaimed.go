package executor

import (
	"time"

	"github.com/orderwheel/orderwheel/internal/arming"
)

// never is when an id may run without a claim that has had such a run, or that the
// user has cancelled.
const never = arming.Never

// alone is what is known of an id that has to do without a claim. Guarded by
// Executor.mu.
type alone struct {
	running bool  // such a run is at work
	voided  bool  // a user's call was answered since it began
	ran     bool  // one has begun since the user's last answered call
	tries   int   // that have ended
	begunMS int64 // the store's clock, about, when the first began; 0: none has

	put     bool // in outage.put
	waiting bool // in Executor.mu.waits
	waitMS  int64
	gen     uint32 // of its entry there; older entries are void
}

// waits reports whether w is in force.
func (l *alone) waits(w entry) bool { return l.waiting && l.gen == w.gen }

func (t *task) loneState() *alone {
	if t.lone == nil {
		t.lone = new(alone)
	}
	return t.lone
}

// runsAlone reports whether a run of t without a claim is at work.
func (t *task) runsAlone() bool { return t.lone != nil && t.lone.running }

// considerLocked sees to it that t runs without a claim when its time has come, if its
// shard is away and nothing forbids it. What a user's call forbids is considered again
// when that call has ended.
func (e *Executor) considerLocked(t *task) {
	if e.cfg.RequireClaim || t.notBeforeMS == never || t.stage != aside && t.stage != claiming ||
		e.mu.away[e.cfg.shardOf(t.id)] == nil || t.runsAlone() || e.cfg.Calls.Blocks(t.id) {
		return
	}
	l := t.loneState()
	if l.waiting && l.waitMS <= t.notBeforeMS {
		return // it will be looked at then
	}
	l.gen++
	l.waiting, l.waitMS = true, t.notBeforeMS
	e.mu.waits.push(entry{t.notBeforeMS, l.gen, t})
	wake(e.claimWake)
}

// wakenLocked looks at the ids that wait for their time to run without a claim: those
// that were put aside are ready again, and those whose claim is under way begin.
func (k *taking) wakenLocked() {
	e := k.e
	for looked := 0; e.mu.waits.len() > 0; looked++ {
		w := e.mu.waits.first()
		l := w.t.lone
		switch {
		case looked == takeMost:
			k.w.more = true
			return
		case !l.waits(w):
			e.mu.waits.pop()
			continue
		case w.ms > k.lowMS:
			// The lower bound is slower than the local clock by 1/2000 at most.
			left := time.Duration(w.ms-k.lowMS) * time.Millisecond
			k.w.again = k.sooner(min(left+left/1000+time.Millisecond, time.Hour))
			return
		case w.t.stage == claiming && k.free == 0:
			return
		}
		e.mu.waits.pop()
		l.waiting = false
		o := e.mu.away[e.cfg.shardOf(w.t.id)]
		switch {
		case o == nil:
		case w.t.stage == claiming:
			k.beginLocked(w.t, o)
		case w.t.stage == aside:
			o.waiting--
			e.readyLocked(w.t, k.lowMS)
		}
	}
}

// unclaimedLocked takes t, which was ready and whose shard is away. It reports whether t
// runs.
func (k *taking) unclaimedLocked(t *task, o *outage) bool {
	k.e.asideLocked(t, o)
	return k.beginLocked(t, o)
}

// beginLocked begins a run of t without a claim, if that may be now.
func (k *taking) beginLocked(t *task, o *outage) bool {
	e := k.e
	if e.cfg.RequireClaim || t.notBeforeMS > k.lowMS || e.cfg.Calls.Blocks(t.id) {
		e.considerLocked(t)
		return false
	}
	l := t.loneState()
	l.running, l.ran = true, true
	if l.begunMS == 0 {
		l.begunMS = e.cfg.NowMS()
	}
	o.ran++
	k.free--
	e.mu.running++
	e.mu.spare += e.size - 1
	// The handler sees a copy: the claim's fields of t are not to be touched.
	seen := &task{id: t.id, source: t.source, attempt: l.tries + 1, firstMS: t.dueMS, nowMS: k.lowMS, unclaimed: true}
	c := &call{tasks: []*task{seen}, alone: t}
	e.mu.calls[c] = struct{}{}
	k.w.unclaimed = append(k.w.unclaimed, c)
	return true
}

// submitUnclaimed hands a run to the pool. One that it refuses comes again.
func (e *Executor) submitUnclaimed(c *call) {
	if e.pool.Submit(func() { e.runUnclaimed(c) }) != nil {
		e.endUnclaimed(c, outcome{kind: retryLater, atMS: e.cfg.NowMS() + pause.Milliseconds()})
	}
}

// runUnclaimed is one run without a claim, on a worker of the pool. Its handler's
// effects stand behind a condition, and that makes it safe, not a claim.
func (e *Executor) runUnclaimed(c *call) {
	e.stats.unclaimed.Add(1)
	outcomes := make([]outcome, 1)
	defer func() { e.endUnclaimed(c, outcomes[0]) }()
	ctx := e.beginAlone(c)
	defer ctx.end(nil)
	e.attempt(ctx, c, outcomes)
}

// beginAlone gives the handler's ctx, which is to be ended. There is no lease, but a handler that
// does not heed its ctx is stuck when it would be with one that was renewed.
func (e *Executor) beginAlone(c *call) *handlerCtx {
	now := time.Now()
	ctx := e.newCtx(now)
	e.mu.Lock()
	defer e.mu.Unlock()
	c.ctx, c.begun = ctx, now
	c.lease = ctx.deadline.Add(e.cfg.Lease / 3)
	if least := now.Add(e.cfg.Lease); c.lease.Before(least) {
		c.lease = least
	}
	return ctx
}

// endUnclaimed notes how a run without a claim has ended. The store is not told:
// the id is claimed, and runs again, as if it had not run. Only what failed, or was
// told to come later, runs once more without a claim while the store is away.
func (e *Executor) endUnclaimed(c *call, o outcome) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.overLocked(c)
	if !c.stuck { // else it has ended before
		e.aloneOverLocked(c.alone, o)
	}
	e.idleLocked()
	wake(e.claimWake)
}

// aloneOverLocked sees to it that t goes on after a run without a claim.
func (e *Executor) aloneOverLocked(t *task, o outcome) {
	l := t.lone
	l.running = false
	l.tries++
	switch {
	case l.voided: // what the user's call said holds, not what this run says
		l.voided, l.tries, l.begunMS, l.ran = false, 0, 0, false
	case o.kind == retryLater || o.kind == postpone:
		t.notBeforeMS = o.atMS
	default:
		t.notBeforeMS = never
	}
	switch t.stage {
	case aside:
		switch o := e.mu.away[e.cfg.shardOf(t.id)]; {
		case o == nil:
			e.readyLocked(t, e.cfg.NowMS())
		case !l.put: // the outage in which it began has ended, and this is another
			e.asideLocked(t, o)
			fallthrough
		default:
			e.considerLocked(t)
		}
	case claiming:
		e.considerLocked(t)
	case granted:
		e.grantedLocked(t)
	case leaving:
		e.releaseLocked(t)
	}
}

// grantedLocked sees to it that t, which is claimed and has no worker, runs when there
// is one; not beside a run of its own without a claim. After Stop it goes back.
func (e *Executor) grantedLocked(t *task) {
	t.stage, t.granted = granted, time.Now()
	switch {
	case e.mu.stopping:
		e.handBackLocked(t)
	case !t.runsAlone():
		e.mu.claimed = append(e.mu.claimed, t)
	}
	wake(e.claimWake)
}

// handBackLocked returns t, which is claimed, to the store.
func (e *Executor) handBackLocked(t *task) {
	t.stage, t.outcome = finished, outcome{kind: handBack}
	e.mu.finished = append(e.mu.finished, t)
	e.mu.unsettled++
	wake(e.settleWake)
}

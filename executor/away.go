package executor

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// awayAfter is how long a claim may be without an answer before its shard counts as
// away. It is counted in ticks: in a process that is short of processor time, where an
// answer waits for its reader, each tick is late as well.
const (
	awayAfter = awayTicks * awayTick
	awayTicks = 5
	awayTick  = 50 * time.Millisecond
)

// outage is what happens while a shard of the store is away: from when a claim was
// not answered in time until that claim is answered. Guarded by Executor.mu.
type outage struct {
	since   time.Time
	part    *part   // the claim that has no answer
	put     []*task // every task that was put aside in it, once
	waiting int     // of these, how many are put aside now
	ran     int     // runs without a claim that have begun
}

// watch sees to it that a claim without an answer holds up nothing but its shards.
type watch struct {
	e     *Executor
	parts []*part // what is asked

	mu struct {
		sync.Mutex
		timer *time.Timer
		ticks int
		over  bool // the claim loop goes on, or has been relieved
	}
}

func (e *Executor) watch(parts []*part) *watch {
	w := &watch{e: e, parts: parts}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.timer = time.AfterFunc(awayTick, w.tick)
	return w
}

// end ends the watch. It is false when the claim loop has been relieved.
func (w *watch) end() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.timer.Stop()
	mine := !w.mu.over
	w.mu.over = true
	return mine
}

// tick relieves the claim loop when its time has come.
func (w *watch) tick() {
	for _, p := range w.relieve() {
		w.e.cfg.Logger.Warn("claims_unanswered", slog.Int("shard", p.shard),
			slog.Duration("for", awayAfter), slog.Bool("unclaimed_runs", !w.e.cfg.RequireClaim))
	}
}

func (w *watch) relieve() (gone []*part) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.over {
		return nil
	}
	if w.mu.ticks++; w.mu.ticks < awayTicks {
		w.mu.timer.Reset(awayTick)
		return nil
	}
	w.mu.over = true
	gone = w.e.away(w.parts)
	w.e.loops.Go(w.e.claimLoop) // while the one that it relieves is still counted
	return gone
}

// away notes that the shards of those parts are away that are not answered, and returns
// these parts. Their workers are free for others.
func (e *Executor) away(parts []*part) (gone []*part) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range parts {
		if len(p.tasks) == 0 {
			continue
		}
		gone = append(gone, p)
		p.outage = &outage{since: time.Now().Add(-awayAfter), part: p}
		e.mu.away[p.shard] = p.outage
		e.vacantLocked(p.tasks)
		e.reserveLocked(p)
		for _, t := range p.tasks {
			e.considerLocked(t)
		}
	}
	return gone
}

// backLocked notes that the shard of p is back: all that was put aside is claimed in
// the ordinary way.
func (e *Executor) backLocked(p *part) {
	o := p.outage
	delete(e.mu.away, p.shard)
	nowMS := e.cfg.NowMS()
	for _, t := range o.put {
		t.lone.put = false
		if t.stage == aside && !t.lone.running {
			e.readyLocked(t, nowMS)
		}
	}
	old := e.mu.waits
	e.mu.waits = queue{}
	for _, w := range old.items {
		if l := w.t.lone; len(e.mu.away) > 0 && l.waits(w) && e.mu.away[e.cfg.shardOf(w.t.id)] != nil {
			e.mu.waits.push(w)
		} else if l.waits(w) {
			l.waiting = false
		}
	}
}

// tellBack logs the end of an outage, if there was one.
func (e *Executor) tellBack(shard int, o *outage) {
	if o != nil {
		e.cfg.Logger.Info("claims_answered", slog.Int("shard", shard),
			slog.Duration("away", time.Since(o.since)), slog.Int("unclaimed_runs", o.ran))
	}
}

// asideLocked puts t aside until o has ended, or until it may run without a claim.
func (e *Executor) asideLocked(t *task, o *outage) {
	t.stage = aside
	o.waiting++
	l := t.loneState()
	if !l.put {
		l.put = true
		o.put = append(o.put, t)
	}
}

// awayProblems says which shards of the store are away, and how much waits for them.
func (e *Executor) awayProblems() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var problems []string
	for _, shard := range slices.Sorted(maps.Keys(e.mu.away)) {
		o := e.mu.away[shard]
		where := "the store"
		if e.cfg.ShardOf != nil {
			where = fmt.Sprintf("shard %d of the store", shard)
		}
		then := fmt.Sprintf("%d runs without a claim have begun", o.ran)
		if e.cfg.RequireClaim {
			then = "none of them runs without a claim"
		}
		problems = append(problems, fmt.Sprintf("%s has answered no claim since %s (%v): %d due ids wait for it; %s",
			where, o.since.Format(time.RFC3339), time.Since(o.since).Round(100*time.Millisecond), o.waiting+len(o.part.tasks), then))
	}
	if e.cfg.Calls.Full() && !e.cfg.RequireClaim {
		problems = append(problems, "too many calls had an unknown outcome: nothing runs without a claim")
	}
	return problems
}

// awaitingLocked is how many ids wait for a claim from a shard that is away.
func (e *Executor) awaitingLocked() (n int) {
	for _, o := range e.mu.away {
		n += o.waiting + len(o.part.tasks)
	}
	return n
}

package executor

import (
	"crypto/rand"
	"time"

	"github.com/orderwheel/orderwheel/persist"
)

// takeMost bounds the ready ids looked at in one go, while the mutex is held.
const takeMost = 4096

// work is what the claim loop has to do.
type work struct {
	claimed   []*call // claimed already, and there is a worker for it now
	unclaimed []*call // to run without a claim
	parts     []*part // to claim
	stopping  bool
	more      bool          // there is more to look at, at once
	again     time.Duration // when to look again, if nothing happens; 0: then
}

// take gives work to the workers that are free: first what is claimed already, then
// the oldest of the ready lists. Ids whose shard is away run without a claim, if they
// may, or are put aside until it is back.
func (e *Executor) take() (w work) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.mu.stopping {
		return work{stopping: true}
	}
	taking := taking{e: e, w: &w, free: e.freeLocked() / e.size}
	before := taking.free
	taking.claimedLocked()
	if len(e.mu.away) > 0 {
		taking.lowMS = e.cfg.LowerMS()
		taking.wakenLocked()
	}
	taking.readyLocked()
	for _, p := range w.parts {
		e.mu.running += p.workers
		e.reserveLocked(p)
	}
	w.more = w.more || before > taking.free
	return w
}

// taking is one take. Its methods need Executor.mu.
type taking struct {
	e     *Executor
	w     *work
	free  int   // workers; each takes one call
	lowMS int64 // the store's clock, at least; only where a shard is away
}

func (k *taking) claimedLocked() {
	mu := &k.e.mu
	for k.free > 0 && len(mu.claimed) > 0 {
		if c := k.e.nextLocked(); c != nil {
			k.free--
			k.w.claimed = append(k.w.claimed, c)
		}
	}
}

// readyLocked takes from the ready lists. While both wait they take turns. What is asked
// of a shard takes whole workers: up to BatchSize tasks each.
func (k *taking) readyLocked() {
	e := k.e
	ahead := e.aheadLocked(k.free)
	room := min(k.roomLocked(ahead), persist.MaxBatch)
	asked := 0
	for looked := 0; k.free > 0 || k.hasRoom() || ahead > 0; looked++ {
		q, both := e.turnLocked()
		if q.len() == 0 {
			return
		}
		if looked == takeMost {
			k.w.more = true
			return
		}
		t := q.first().t
		shard := e.cfg.shardOf(t.id)
		if o := e.mu.away[shard]; o != nil {
			if k.free == 0 {
				return
			}
			q.pop()
			if k.unclaimedLocked(t, o) && both {
				e.mu.oldTurn = !e.mu.oldTurn
			}
			continue
		}
		if asked == room {
			k.w.again = k.sooner(awayAfter)
			return
		}
		p := k.partOf(shard)
		worker := true
		if p == nil || p.workers%e.size == 0 {
			switch {
			case k.free > 0:
				k.free--
			case ahead > 0 && !t.reaped:
				ahead--
				worker = false
			default:
				return
			}
		}
		q.pop()
		if p == nil {
			p = k.addPartLocked(shard)
		}
		p.tasks = append(p.tasks, t)
		if worker {
			p.workers++
		}
		t.stage, t.worker, t.token = claiming, worker, p.token
		asked++
		if both {
			e.mu.oldTurn = !e.mu.oldTurn
		}
	}
}

// turnLocked is the ready list whose turn it is, and whether both wait. Where one worker is free
// at a time each take is of one task, so the turn outlasts it.
func (e *Executor) turnLocked() (q *queue, both bool) {
	both = e.mu.fresh.len() > 0 && e.mu.backlog.len() > 0
	if e.mu.fresh.len() == 0 || both && e.mu.oldTurn {
		return &e.mu.backlog, both
	}
	return &e.mu.fresh, both
}

// partOf is what is asked of shard; nil: nothing so far.
func (k *taking) partOf(shard int) *part {
	for _, p := range k.w.parts {
		if p.shard == shard {
			return p
		}
	}
	return nil
}

// hasRoom reports whether a worker that is spoken for could have one more task.
func (k *taking) hasRoom() bool {
	for _, p := range k.w.parts {
		if p.workers%k.e.size > 0 {
			return true
		}
	}
	return false
}

func (k *taking) addPartLocked(shard int) *part {
	p := &part{shard: shard, token: rand.Text()}
	k.w.parts = append(k.w.parts, p)
	k.e.mu.asking++
	return p
}

// roomLocked is how many tasks may be claimed, so many of them ahead, so that the finished
// ones which wait for the store's answer stay in bounds; what is asked for apart has as much
// room for itself. With too many of them none is claimed, and so nobody would notice that the
// store is away; so when its answer is late some are, one by one, at most one for each worker.
func (k *taking) roomLocked(ahead int) int {
	e := k.e
	most := e.cfg.Workers * max(unsettledPerWorker, 2*e.size)
	have := e.mu.unsettled - min(e.apartLocked(), most) + (e.cfg.Workers-k.free)*e.size + e.waitingLocked()
	switch {
	case have < most:
		return min(k.free*e.size+ahead, most-have)
	case have < most+e.cfg.Workers*e.size && e.settlesLateLocked():
		return min(k.free, 1)
	}
	return 0
}

// sooner is the wait until the next look, if that is to be after d at the latest.
func (k *taking) sooner(d time.Duration) time.Duration {
	if k.w.again == 0 {
		return d
	}
	return min(k.w.again, d)
}

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

// claimPatience is how long one claim call may take before it is made again, for a client
// whose connection hangs and that knows no end of it by itself.
const claimPatience = 5 * time.Second

// part is what one claim asks of one shard, until all of it is answered.
type part struct {
	shard int
	// One token for one claim, also when it is repeated: the store knows its own
	// claim again, so a repetition never finds its ids busy by itself.
	token   string
	workers int // how many of its tasks have spoken for a worker, when it is asked for them

	// Guarded by Executor.mu.
	tasks  []*task // those that have no answer
	spare  int     // how many more the workers spoken for could have had
	ahead  int     // how many of them have no worker yet
	outage *outage // its shard is away; nil: it is not, as far as is known
}

// claimLoop takes as many ready ids as there are free workers, and as will be free soon
// (see aheadLocked), and claims them in one call for each shard. What is claimed goes
// to the pool, and so does what may run without. There is one claim loop that takes; one
// whose claim has no answer has been relieved by the next, and ends with that claim.
func (e *Executor) claimLoop() {
	for {
		w := e.take()
		if w.stopping {
			return
		}
		for _, c := range w.claimed {
			e.submit(c)
		}
		for _, c := range w.unclaimed {
			e.submitUnclaimed(c)
		}
		switch {
		case len(w.parts) > 0:
			if !e.ask(w.parts) {
				return
			}
		case !w.more:
			e.await(w.again)
		}
	}
}

// await waits until there may be something to do, or for again, if that is not 0.
func (e *Executor) await(again time.Duration) {
	if again == 0 {
		<-e.claimWake
		return
	}
	timer := time.NewTimer(again)
	defer timer.Stop()
	select {
	case <-e.claimWake:
	case <-timer.C:
	}
}

// ask claims parts at once, and returns when all are answered. It is false when that took
// so long that another claim loop goes on in its place.
func (e *Executor) ask(parts []*part) bool {
	w := e.watch(parts)
	var others sync.WaitGroup
	for _, p := range parts[1:] {
		others.Go(func() { e.claim(p) })
	}
	e.claim(parts[0]) // here: a goroutine for each would cost as much as the rest of it
	others.Wait()
	return w.end()
}

// claim asks the store for the tasks of p until all are answered, and acts on the
// answers. When Stop gives up waiting, what has no answer stays in the stage claiming:
// Stop hands it back by its token.
func (e *Executor) claim(p *part) {
	failing := false
	for left := p.tasks; len(left) > 0; {
		err := e.claimOnce(p, left)
		e.mu.Lock()
		o := p.outage
		left = p.tasks
		e.mu.Unlock()
		switch {
		case len(left) == 0:
			e.tellBack(p.shard, o)
			return
		case e.ctx.Err() != nil:
			e.letGo(p)
			return
		case err != nil && !failing && !errors.Is(err, context.DeadlineExceeded): // of that the store has told
			failing = true
			e.cfg.Logger.Error("claim_failed", slog.Int("ids", len(left)), slog.Any("error", err))
		}
		rest(e.ctx, pause)
	}
}

// claimOnce makes one call for left, which are p.tasks. A call that took too long is
// made again, for it may hang on a connection that is dead; and the user's answers since
// the call began are remembered no longer than it takes.
func (e *Executor) claimOnce(p *part, left []*task) error {
	ids := make([]string, len(left))
	for i, t := range left {
		ids[i] = t.id
	}
	ticket, known := e.cfg.Board.Ask(), e.cfg.Calls.Seq()
	defer e.cfg.Board.End(ticket)
	ctx, cancel := context.WithTimeout(e.ctx, claimPatience)
	defer cancel()
	claims, err := e.cfg.Store.Claim(ctx, p.token, ids, e.cfg.Lease, e.cfg.Backoff.limit())
	missing := persist.Missing(err, len(left))
	if len(missing) == len(left) {
		return err
	}
	e.cfg.Observe(claims.Clock)
	a := e.read(ticket, left, claims, missing)
	e.cfg.Calls.Claimed(known, a.told)
	for _, c := range e.heard(p, a) {
		e.submit(c)
	}
	return err
}

// answers is what the store has said to a claim.
type answers struct {
	granted, dropped, left []*task // left: not answered
	told                   []string
}

// read takes the answers to a claim of tasks, and arms what is due later.
func (e *Executor) read(ticket arming.Ticket, tasks []*task, claims persist.Claims, missing []int) (a answers) {
	for i, t := range tasks {
		if _, none := slices.BinarySearch(missing, i); none {
			a.left = append(a.left, t)
			continue
		}
		c := claims.Claims[i]
		switch c.State {
		case persist.Claimed:
			t.attempt, t.firstMS = c.Attempt, c.FirstDueMS
			t.nowMS = max(claims.NowMS, c.FirstDueMS) // its own shard's clock may be ahead of that one
			t.lease = claims.Sent.Add(e.cfg.Lease)
			a.granted = append(a.granted, t)
			a.told = append(a.told, t.id)
			continue
		case persist.NotYet:
			// By the time left as the store's clock told it: a local estimate
			// that runs ahead would otherwise ask again at once, and again.
			e.stats.notYet.Add(1)
			e.cfg.Board.Arm(ticket, t.id, max(c.DueMS, e.cfg.NowMS()+c.LeftMS))
		case persist.Busy:
			e.stats.busy.Add(1)
			a.told = append(a.told, t.id)
		case persist.Buried:
			e.buriedByClaim(t)
			a.told = append(a.told, t.id)
		default:
			e.stats.gone.Add(1)
			a.told = append(a.told, t.id)
		}
		a.dropped = append(a.dropped, t)
	}
	return a
}

// heard notes the answers to p. It returns the calls of those of the granted that have
// their worker; the others wait for one.
func (e *Executor) heard(p *part, a answers) (begin []*call) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p.tasks = a.left; len(a.left) == 0 {
		e.endLocked(p)
	}
	e.reserveLocked(p)
	var mine []*task
	for _, t := range a.granted {
		if t.lone != nil {
			t.begunMS = t.lone.begunMS
		}
		if t.worker {
			mine = append(mine, t)
		} else {
			e.grantedLocked(t)
		}
	}
	e.vacantLocked(mine)
	e.vacantLocked(a.dropped)
	for chunk := range slices.Chunk(mine, e.size) {
		if e.freeLocked() >= e.size { // but for an answer in part there is always one
			begin = append(begin, e.callLocked(chunk))
			continue
		}
		for _, t := range chunk {
			e.grantedLocked(t)
		}
	}
	e.dropLocked(a.dropped)
	return begin
}

// letGo ends p, whose claim nobody waits for any more. Its tasks stay for Stop.
func (e *Executor) letGo(p *part) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.spare -= p.spare
	e.mu.ahead -= p.ahead
	p.spare, p.ahead = 0, 0
	e.endLocked(p)
}

// reserveLocked speaks for as many workers as those tasks of p that have one will take:
// whole ones, for the tasks of different claims run in different calls. It counts the
// others as asked for ahead of their workers, unless nobody knows when they are answered.
func (e *Executor) reserveLocked(p *part) {
	n := 0
	for _, t := range p.tasks {
		if t.worker {
			n++
		}
	}
	e.mu.spare -= p.spare
	e.mu.ahead -= p.ahead
	p.spare, p.ahead = (e.size-n%e.size)%e.size, len(p.tasks)-n
	if p.outage != nil {
		p.ahead = 0
	}
	e.mu.spare += p.spare
	e.mu.ahead += p.ahead
}

// vacantLocked frees the workers spoken for by tasks.
func (e *Executor) vacantLocked(tasks []*task) {
	for _, t := range tasks {
		if t.worker {
			t.worker = false
			e.mu.running--
		}
	}
}

// endLocked notes that p has ended.
func (e *Executor) endLocked(p *part) {
	e.mu.asking--
	if p.outage != nil {
		e.backLocked(p)
	}
	wake(e.claimWake)
}

// dropLocked lets go of tasks that did not come to run, and of the workers spoken for.
func (e *Executor) dropLocked(tasks []*task) {
	e.vacantLocked(tasks)
	for _, t := range tasks {
		e.releaseLocked(t)
	}
	wake(e.claimWake)
	e.idleLocked()
}

// patient bounds a call of the store, where it may be answered in part.
func (e *Executor) patient(ctx context.Context) (context.Context, context.CancelFunc) {
	if e.cfg.Patience == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, e.cfg.Patience)
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

package executor

import (
	"slices"
	"time"

	"github.com/orderwheel/orderwheel/persist"
)

// aheadFor is for how long the workers get work claimed ahead: for about as long as a
// claim takes while there is much to do, so that no worker waits for one.
const aheadFor = 20 * time.Millisecond

// aheadLocked is how many tasks may be claimed now beside those for the workers that are
// free: as many as all workers are expected to begin within aheadFor, less those that wait
// already. A claim costs the store much by itself and little for each task, so while work
// waits, none is made for a few.
//
// Where a call of the handler takes long it is none or nearly none, since what is claimed
// here cannot run elsewhere meanwhile, and its lease goes by. While a shard is away it is
// none: workers that always have a next task would leave none to the runs without a claim.
func (e *Executor) aheadLocked(free int) int {
	if len(e.mu.away) > 0 {
		return 0
	}
	most := e.aheadMostLocked()
	room := most - e.waitingLocked()
	if room < 1 || free == 0 && 2*room < most {
		return 0
	}
	return room
}

func (e *Executor) aheadMostLocked() int {
	if e.mu.pace == 0 {
		return 0
	}
	pace := max(e.mu.pace, time.Microsecond)
	return min(int(time.Duration(e.cfg.Workers*e.size)*aheadFor/pace), persist.MaxBatch)
}

// waitingLocked is how many tasks are claimed, or being claimed, and have no worker yet.
func (e *Executor) waitingLocked() int { return len(e.mu.claimed) + e.mu.ahead }

// lowLocked reports whether it is time to claim ahead.
func (e *Executor) lowLocked() bool {
	return e.mu.fresh.len()+e.mu.backlog.len() > 0 && e.aheadLocked(0) > 0
}

// paceLocked notes that a call of the handler took so long.
func (e *Executor) paceLocked(took time.Duration) {
	if e.mu.pace == 0 {
		e.mu.pace = max(took, 1)
	}
	e.mu.pace += (took - e.mu.pace) / 32
}

// nextLocked makes a call of what waits for a worker, which is there; nil: nothing waits,
// or what waited too long, and has been handed back.
func (e *Executor) nextLocked() *call {
	now := time.Now()
	for n := min(e.size, len(e.mu.claimed)); n > 0; n = min(e.size, len(e.mu.claimed)) {
		tasks := slices.Clone(e.mu.claimed[:n])
		clear(e.mu.claimed[:n])
		e.mu.claimed = e.mu.claimed[n:]
		tasks = slices.DeleteFunc(tasks, func(t *task) bool { return e.agedLocked(t, now) })
		if len(tasks) > 0 {
			return e.callLocked(tasks)
		}
	}
	return nil
}

// agedLocked hands t back if it has waited for a worker during a third of a lease: another
// instance may have one. The workers take at least as long as that, so it is not claimed
// again at once.
func (e *Executor) agedLocked(t *task, now time.Time) bool {
	waited := now.Sub(t.granted)
	if waited < e.cfg.Lease/3 {
		return false
	}
	e.mu.pace = max(e.mu.pace, waited)
	e.handBackLocked(t)
	return true
}

// handBackAgedLocked hands back what has waited for a worker for too long.
func (e *Executor) handBackAgedLocked(now time.Time) {
	e.mu.claimed = slices.DeleteFunc(e.mu.claimed, func(t *task) bool { return e.agedLocked(t, now) })
}

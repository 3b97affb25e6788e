package executor

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// apartAfter is when a shard that has left the end of a task without an answer is asked again.
// The wait doubles up to pause.
const apartAfter = 10 * time.Millisecond

// apart are the finished tasks of a shard that has left some without an answer. They are
// asked for by a goroutine of their own, so that the other shards do not wait for this one again
// and again. Guarded by Executor.mu.
type apart struct {
	since time.Time
	tasks []*task // that wait to be asked for
	asked int     // how many are being asked for
	still bool    // some of these, or of those before, were left without an answer
}

// askApart has tasks asked for apart, which the store gave no answer for.
func (e *Executor) askApart(tasks []*task) {
	if e.ctx.Err() != nil {
		e.unfinished(tasks) // for Stop's last word, or after it
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, t := range tasks {
		shard := e.cfg.shardOf(t.id)
		a := e.mu.apart[shard]
		if a == nil {
			a = &apart{since: time.Now()}
			e.mu.apart[shard] = a
			e.loops.Go(func() { e.settleApart(shard) })
		}
		a.tasks, a.still = append(a.tasks, t), true
	}
}

// joinsApartLocked puts t, which has finished, among those of its shard that are asked for apart,
// if any are.
func (e *Executor) joinsApartLocked(t *task) bool {
	a := e.mu.apart[e.cfg.shardOf(t.id)]
	if a != nil {
		a.tasks = append(a.tasks, t)
	}
	return a != nil
}

// settleApart asks a shard for the ends of its tasks until it has left none without an answer.
func (e *Executor) settleApart(shard int) {
	for wait := apartAfter; ; wait = min(2*wait, pause) {
		batch, ok := e.takeApart(shard)
		if !ok {
			return
		}
		rest(e.ctx, wait)
		e.settle(e.ctx, batch)
	}
}

// takeApart takes what waits for shard. It is false when the shard is like the others again, or
// when Stop waits no more: what waits is finished like all others then.
func (e *Executor) takeApart(shard int) (batch []*task, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	a := e.mu.apart[shard]
	if !a.still || e.ctx.Err() != nil {
		delete(e.mu.apart, shard)
		e.mu.finished = append(e.mu.finished, a.tasks...)
		wake(e.settleWake)
		return nil, false
	}
	batch = a.tasks
	a.tasks, a.asked, a.still = nil, len(batch), false
	return batch, true
}

// apartLocked is how many tasks are asked for apart.
func (e *Executor) apartLocked() (n int) {
	for _, a := range e.mu.apart {
		n += len(a.tasks) + a.asked
	}
	return n
}

// settlesLateLocked reports whether an answer of the store is late.
func (e *Executor) settlesLateLocked() bool {
	return len(e.mu.apart) > 0 || !e.mu.settlingAt.IsZero() && time.Since(e.mu.settlingAt) >= awayAfter
}

// apartProblems says of which shards the ends of tasks have no answer.
func (e *Executor) apartProblems() (problems []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, shard := range slices.Sorted(maps.Keys(e.mu.apart)) {
		a := e.mu.apart[shard]
		if ago := time.Since(a.since); ago >= pause {
			problems = append(problems, fmt.Sprintf("shard %d of the store has left acks without an answer since %s (%v): %d tasks have ended, and it does not know",
				shard, a.since.Format(time.RFC3339), ago.Round(100*time.Millisecond), len(a.tasks)+a.asked))
		}
	}
	return problems
}

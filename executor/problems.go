package executor

import "fmt"

// Problems says in words what is wrong now; empty: all is well. It asks nothing of
// the store.
func (e *Executor) Problems() (problems []string) {
	e.mu.Lock()
	held := e.mu.stuck - e.mu.extra
	e.mu.Unlock()
	if held > 0 {
		problems = append(problems, fmt.Sprintf("%d of %d workers are held by handlers that have not returned though their ctx and their lease are over; "+
			"%d more were replaced, and no further ones are", held, e.cfg.Workers, e.cfg.Workers))
	}
	if e.alarms.full() {
		problems = append(problems, fmt.Sprintf("OnDead is behind by %d calls: further dead tasks are not told", maxAlarms))
	}
	problems = append(problems, e.apartProblems()...)
	return append(problems, e.awayProblems()...)
}

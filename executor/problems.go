package executor

import "fmt"

// Problems says in words what is wrong now; empty: all is well. It asks nothing of
// the store.
func (e *Executor) Problems() (problems []string) {
	if e.alarms.full() {
		problems = append(problems, fmt.Sprintf("OnDead is behind by %d calls: further dead tasks are not told", maxAlarms))
	}
	return problems
}

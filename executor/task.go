package executor

import (
	"context"
	"fmt"
	"time"
)

// Source says what brought a task to the executor.
type Source int

// The sources of a task.
const (
	FromWheel    Source = iota // the wheel fired it
	FromSweep                  // the sweep found it overdue
	FromRecovery               // it was overdue at Start, or the lease of its last run was over
)

func (s Source) String() string {
	switch s {
	case FromWheel:
		return "wheel"
	case FromSweep:
		return "sweep"
	case FromRecovery:
		return "recovery"
	}
	return fmt.Sprintf("Source(%d)", int(s))
}

// Task is one task, as its handler sees it.
type Task struct {
	ID      string
	Due     time.Time // when it was due first; a retry does not change it
	Attempt int       // 1 for the first run
	Now     time.Time // the store's clock when it was claimed: never before Due
	Source  Source

	// Unclaimed: the store is away, and the task runs without a claim. It runs again
	// under one when the store is back. Now is then a time which the store's clock has
	// passed; Due the time at which it was due now, and Attempt 1 more than its runs
	// without a claim in a row that failed, for only the store knows the others.
	Unclaimed bool
}

// Handler does the work of one task. It may be called more than once for one
// task, and by two goroutines at once when a lease runs out, so its effects
// must be idempotent. ctx ends with the lease, after HandlerTimeout, or when
// Stop gives up waiting. Without a claim there is no lease, and what comes of the run
// counts only as long as the store is away: see the package documentation.
//
// nil: done, the task is removed. An error made by RetryAt: not yet, the task
// comes back then and the attempt does not count. Any other error, or a panic:
// it is retried with backoff.
type Handler func(ctx context.Context, t Task) error

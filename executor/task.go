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
	FromWheel     Source = iota // the wheel fired it
	FromSweep                   // the sweep found it overdue
	FromRecovery                // it was overdue at Start, or the lease of its last run was over
	FromReconcile               // it was unpaid in the order database, and the store did not know it
)

func (s Source) String() string {
	switch s {
	case FromWheel:
		return "wheel"
	case FromSweep:
		return "sweep"
	case FromRecovery:
		return "recovery"
	case FromReconcile:
		return "reconcile"
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
// task, and by two goroutines at once when a lease is lost, so its effects
// must be idempotent. ctx ends after HandlerTimeout, when the lease is lost (then
// context.Cause is ErrLeaseLost), or when Stop gives up waiting. Until then the
// lease is renewed. Without a claim there is no lease, and what comes of the run
// counts only as long as the store is away: see the package documentation.
//
// nil: done, the task is removed. An error made by RetryAt: not yet, the task
// comes back then and the attempt does not count. One made by Permanent: the task is
// buried. Any other error, or a panic: it is retried with backoff, and buried when
// that was its last attempt.
type Handler func(ctx context.Context, t Task) error

// BatchHandler does the work of many tasks at once, in one transaction for example.
// What is said of Handler holds for it, and for each task by itself: it returns an
// error for each, in the order of tasks. Other than len(tasks) of them, or a panic, are
// a failed attempt of all. ctx ends when the lease of any of them is lost.
//
// It gets what was due when a worker was free, 1 to BatchSize tasks: a batch is
// never waited for, and its tasks are settled together when it returns. Without a
// claim it gets one task in a call.
type BatchHandler func(ctx context.Context, tasks []Task) []error

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/orderwheel/orderwheel/executor"
)

// plan is what a handler does when a task is tried for the first time. Each later
// attempt succeeds.
type plan int

const (
	succeed plan = iota
	fail
	panics
	notYet
)

const notYetFor = 200 * time.Millisecond

// ledger knows the tasks that have still to run, and no others: it does not grow
// itself. An id is noted before the call that schedules it, for it may run before that
// call returns.
type ledger struct {
	scheduled, moved, cancelled, tooLate, done, failed, early atomic.Int64

	mu struct {
		sync.Mutex
		open map[string]plan
	}
}

func newLedger() *ledger {
	l := &ledger{}
	l.mu.open = make(map[string]plan)
	return l
}

func (l *ledger) note(id string, p plan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.open[id] = p
}

// forget: id need not run any more.
func (l *ledger) forget(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.mu.open, id)
}

// planOf an id that is not open is to succeed: it was cancelled as it began.
func (l *ledger) planOf(id string) plan {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.open[id]
}

// succeedNext changes the plan of id, unless it was cancelled meanwhile.
func (l *ledger) succeedNext(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, open := l.mu.open[id]; open {
		l.mu.open[id] = succeed
	}
}

func (l *ledger) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.mu.open)
}

// handle is the engine's handler.
func (l *ledger) handle(_ context.Context, t executor.Task) error {
	if time.Now().Before(t.Due) { // Redis is on this machine: they have one clock
		l.early.Add(1)
	}
	if t.Attempt == 1 {
		switch l.planOf(t.ID) {
		case fail:
			l.failed.Add(1)
			return errors.New("the first attempt fails")
		case panics:
			l.failed.Add(1)
			panic("the first attempt panics")
		case notYet:
			l.succeedNext(t.ID) // a postponed attempt does not count: it is the first again
			return executor.RetryAt(t.Now.Add(notYetFor))
		}
	}
	l.done.Add(1)
	l.forget(t.ID)
	return nil
}

// drain waits until every task has come to its end.
func (l *ledger) drain(ctx context.Context) error {
	for end := time.Now().Add(drainsWithin); l.size() > 0; {
		if ctx.Err() != nil || time.Now().After(end) {
			return fmt.Errorf("lost: %d tasks have not run", l.size())
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

func (l *ledger) faults() error {
	if n := l.early.Load(); n > 0 {
		return fmt.Errorf("%d runs were early", n)
	}
	return nil
}

func (l *ledger) summary() string {
	return fmt.Sprintf("scheduled %d, moved %d, cancelled %d (and %d too late), done %d, failed attempts %d, early %d, not run %d",
		l.scheduled.Load(), l.moved.Load(), l.cancelled.Load(), l.tooLate.Load(), l.done.Load(), l.failed.Load(), l.early.Load(), l.size())
}

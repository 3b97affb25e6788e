package main

import (
	"fmt"
	"io"
	"sync/atomic"
)

// step is a place in a worker where it can be killed.
type step string

// The steps, in the order of an order's life.
const (
	atRandom step = "random" // wherever it is

	scheduleCommit step = "schedule-commit" // the task is scheduled, the order not committed
	scheduleWheel  step = "schedule-wheel"  // Redis has the task, the wheel of the worker does not
	commitSchedule step = "commit-schedule" // the order is committed, or a new expire_at, and not scheduled
	payCancel      step = "pay-cancel"      // the payment is committed, the task not cancelled
	claimHandler   step = "claim-handler"   // the task is claimed, its handler not begun
	inClose        step = "in-close"        // within the close's transaction, before its commit
	closeAck       step = "close-ack"       // the close is committed, the task not acknowledged
	inRebuild      step = "rebuild"         // while Start reads what is in Redis
	inStop         step = "stop"            // within Stop, or when it has just returned
)

var namedSteps = []step{
	scheduleCommit, scheduleWheel, commitSchedule, payCancel, claimHandler, inClose, closeAck, inRebuild, inStop,
}

// steps lets a worker wait where it is to be killed. No code of the engine knows
// of it: the steps are passed in wrappers of the handler, the SQL driver and the
// Redis client, and in the worker's own code.
type steps struct {
	armed atomic.Pointer[step] // where the next who passes has to wait; nil: nowhere
	out   io.Writer
}

// arm has the next who passes s wait there.
func (st *steps) arm(s step) { st.armed.Store(&s) }

// pass is called at a step. If it is armed, it tells the drill so and never
// returns; the rest of the process goes on until it is killed.
func (st *steps) pass(s step) {
	if armed := st.armed.Load(); armed != nil && *armed == s && st.armed.CompareAndSwap(armed, nil) {
		fmt.Fprintln(st.out, tellAt, s)
		select {}
	}
}

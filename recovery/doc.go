// Package recovery brings back what memory does not know: it rebuilds the wheel
// from the store at start, reads what comes near, finds what is overdue and at
// work nowhere, takes back leases that have run out, replaces a wheel that
// stands still, and compares the store with the order database. It also keeps
// the store's clock.
//
// # Where a task is known
//
//	order database   store             here
//	unpaid --------> due, far
//	  |              due, near ------> armed in the wheel --> handed over
//	  |              overdue --------------------------------> handed over
//	  |              running, lease over --> due now --------> handed over
//	  +------------> nowhere ------------> due (reconciled)
//
// near is what is due up to the edge, which moves ahead with the store's clock and
// is one Horizon away from it, or a little less. So memory grows with what is due
// within the Horizon, not with what is pending.
//
// # What it promises
//
//   - Rebuild: when it returns nil, every task that was due in the store when it began,
//     between then and the Horizon, has been armed or handed over, oldest first;
//     what is loaded fires while the rest is still being read. Of what was overdue, as
//     much is handed over as workers can take up; the sweep goes on with the rest,
//     oldest first, at the pace of the workers. A million overdue tasks stay where
//     they are until there is a worker for them.
//   - Horizon: a task is armed long before it is due, whenever it was written, and
//     by whichever instance. The edge moves by a quarter of the Horizon, and each
//     reading begins as much before the old edge. One that fails is made again
//     over the same range.
//   - Sweep: every SweepEvery, what has been overdue for more than Grace and is not
//     held by this engine is handed over. This is how another instance's tasks are
//     taken over when it dies, and how a fault of the wheel is survived. It pauses
//     while more is ready than the workers can take up soon, asks the store nothing
//     meanwhile, and goes on within a millisecond when they have.
//   - Reap: at the same pace, tasks whose lease is over are due at once.
//   - Watchdog: a wheel that does not take what is to be armed, does not answer, or does
//     not hand over what is due, is replaced by a new one, which is rebuilt from the
//     store. So is one whose clock has stepped back by more than two seconds, for it
//     would stand still until the clock has caught up. It takes a second, or
//     two SweepEvery if that is longer, until it is noticed; meanwhile the sweep does the wheel's work, late.
//   - Clock: the store's clock decides what is due. [Clock] carries its last
//     readings on with the local monotonic clock and stays at or behind it, so that
//     the wheel fires when the store agrees, and steps of the local wall clock
//     change nothing. It is read with every page, claim and sweep, and every two seconds. A
//     server that takes over with another clock is followed from its first reading on: the wheel
//     and the edge jump with it, and no range is skipped. Of several shards it is the
//     clock of whichever was read last: keep the clocks of their servers together.
//   - Epoch: every SweepEvery the store is asked whether it has lost writes. If so,
//     all is read again, and the order database is asked at once.
//   - Reconcile: at Start, every ReconcileEvery, and after a loss, all unpaid orders of
//     the Source are read, and what stands nowhere in the store is made due there. What is
//     due, running or dead stays as it is, whatever happens to it at the same time: that
//     is decided in one atomic script.
//
// # No id falls between
//
// The edge moves first, and the reading begins after. A user's call is answered
// by the store first and decided about here after. So a call about an id that is due before the new
// edge is either decided after the edge has moved, and arms it; or its write stood in
// the store before the reading began, and the reading finds it. What another instance
// writes behind the cursor is armed there, and found here by the sweep
// if that instance dies. Package internal/arming has the proof beside the code.
//
// # Reconciliation
//
// One instance of all makes a round at a time, and one a period: the turn stands in the
// store (see persist.TakeTurn). An instance that starts makes one whatever others did
// before, and so does each that has seen a loss; but never two at once, and after a loss not
// before a round that began earlier has ended.
//
// An order that was read as unpaid may be paid, cancelled or closed before it is
// looked for in the store. It stands nowhere then by right, and is put back: it fires, and
// the close finds nothing to do. So a page in which something was found is read once
// more, and only what is unpaid still had no task: that is confirmed, and is the
// alarm, in Problems until the next round. An app that commits an order first and schedules
// it after that will see confirmed ones which are none: schedule first. Dead tasks stay dead.
//
// An id or a time that no task can have is logged, counted, and passed over. A Source
// that fails, panics, answers nonsense, goes round in circles or does not return ends
// the round with an error, and the next one begins again in ten seconds.
//
// # Who owns what
//
// One goroutine sweeps, reaps and asks for the epoch, one reads ahead, one reads the
// clock, one watches the wheel, and one reconciles; all end with Stop. Beside them: a
// reader, as long as a reading takes; one that asks the wheel, and one that stops a
// wheel that was replaced, either as long as that hangs (at most 8 wheels do: then none
// is replaced any more); and one that is in the Source, as long as it does not
// return. A round that fails or panics ends no loop: it is logged once as it changes,
// Problems tells it until it is well, and the next round covers the same range.
//
// # At each crash
//
// Recovery writes three things. A reap and an ensure are one atomic script each:
// being killed before or after leaves the store as it was, or with some leases taken back
// and some orders put back, which the next start reads. A turn whose owner was
// killed is over after a minute at most; a Stop gives it back. Being
// killed while reading leaves nothing behind.
//
// # Left to others
//
// Whether an id that was found still has to run is decided by the claim, not
// here. What Redis loses without a Source stays lost.
package recovery

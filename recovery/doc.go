// Package recovery brings back what memory does not know: it rebuilds the wheel
// from the store at start, finds what is overdue and at work nowhere, and takes
// back leases that have run out. It also keeps the store's clock.
//
// # What it promises
//
//   - Rebuild: when it returns nil, every task that stood in the store when it
//     began has been armed or handed over, oldest first; what is loaded fires while
//     the rest is still being read. It reads by a cursor of due time and id, so a
//     million tasks due in one millisecond are read once each.
//   - Sweep: every SweepEvery, what has been overdue for more than Grace and is not
//     held by this engine is handed over. This is how another instance's tasks are
//     taken over when it dies, and how a fault of the wheel is survived. It pauses
//     while more is ready than the workers can take up soon, and goes on at once
//     while there is more to find.
//   - Reap: at the same pace, tasks whose lease is over are due at once.
//   - Clock: the store's clock decides what is due. [Clock] carries its last
//     readings on with the local monotonic clock and stays at or behind it, so that
//     the wheel fires when the store agrees, and steps of the local wall clock
//     change nothing.
//
// # Who owns what
//
// One goroutine sweeps and reaps, one reads the clock; both end with Stop.
// Errors of the store are retried there; what comes back is logged once as it
// changes, and the next round covers the same range.
//
// # At each crash
//
// Recovery only reads, but for reap, which is one atomic script. Being killed
// at any point leaves the store as it was or with some leases taken back; the
// next start rebuilds from there.
//
// # Left to others
//
// All tasks that the store holds are loaded into memory, however far off they
// are due. Whether an id that was found still has to run is decided by the
// claim, not here.
package recovery

// Package russellluo keeps the contract of package wheel on
// github.com/RussellLuo/timingwheel.
//
// The library knows delays and callbacks. The adapter adds what the contract
// asks beyond that: ids, moves, cancel by id, an injected clock, a Stop that
// waits, and due times as far out as an int64 reaches.
//
//	Schedule ─> armed: id -> entry ─> library timer (delay) ─> goroutine: expired(entry)
//	                   ▲                                            │
//	                   └── is this entry still the armed one? ──────┤
//	                       has the injected clock reached its due?  │ no: a new timer
//	                                                                ▼
//	                                                          fire, a batch of one
//
// The map is the truth and a timer is only a hint: a timer that outlived its
// entry (moved, cancelled, stopped) finds another entry, or none, and does
// nothing. A timer that comes before the injected clock has reached the due
// time is armed again.
//
// # What it cannot promise
//
// Each item follows from the library as it is (the version in go.mod, which is
// its newest and has no tag), and no adapter can mend it from outside:
//
//   - It can hang for good (its issue #53, open). When a slot is flushed, the
//     library re-inserts what has not expired while it holds that slot's lock.
//     An adder that read the wheel's clock, lost the processor, and inserts
//     after its slot has been flushed, makes the slot come up at once. If the
//     slot holds a timer of the next lap by then, that timer is re-inserted
//     into the very same slot, and the flush waits for a lock that it holds
//     itself. From then on nothing expires, and every Schedule or Cancel that
//     touches that slot hangs too. The fewer slots, the shorter the lap and the
//     likelier the meeting. The adapter therefore uses 4,096 slots: it takes an
//     adder that stalls past its own due time, and a timer just 4,096 ms behind
//     it. And it calls the library without holding its own lock, so that Len,
//     NextDue and Stop answer even then, a watchdog can see that the earliest
//     due time has passed, and the wheel can be replaced.
//   - It sleeps on the wall clock. When the wall clock is set back, expiry is
//     late by that step; when the injected clock jumps ahead, what became due
//     by the jump waits until its delay, computed before, is over. Never early
//     holds all the same. (Skipped: "a jump of the clock hands over all that
//     became due" and "after a step back nothing happens until the clock has
//     caught up".)
//   - Every expiry starts a goroutine: 100,000 ids due in one millisecond are
//     100,000 goroutines, and a batch has one id. fire is called by many of
//     them at once, in any order. (Skipped: "one slot is one batch".)
//   - A timer's Stop can be lost while its slot cascades: the timer is in no
//     slot for a moment, and Stop takes that for expired. The id is still not
//     handed over, by the check above, but the timer stays in memory until it
//     would have expired.
//   - Stopping can leave goroutines behind. The library's Stop waits for its
//     two goroutines, and one of them can wait for the other, which has left
//     already (or hang as above). Stop waits for them for a second, then leaves
//     them. Nothing is fired by them any more. (Skipped: "Stop leaves no
//     goroutine".)
//   - A second Stop of the library panics. The adapter calls it once.
//   - NextDue is a lower bound, at most 1,024 ms below the earliest due time:
//     to know it exactly would take a second order of all timers beside the
//     library's.
//
// conformance_test.go skips the four tests of package wheeltest that are named
// here, and no other.
//
// Delays are cut at 30 days and armed again, since the library adds them to the
// wall clock in nanoseconds, which overflow in the year 2262.
package russellluo

// Package executor runs what is due: it claims ids in the store, calls the
// handler on a bounded pool of goroutines, and tells the store what came of it.
//
//	Offer -> ready lists -> claim -> pool -> handler -> ack | retry | bury
//	          (memory)      (store)                         (store)
//
// # What it promises
//
//   - The one who offers never blocks: handing over is an append.
//   - A handler runs only under a claim, which the store grants by its own clock:
//     never early, and by one instance at a time for as long as the lease holds.
//   - Ids are claimed only for workers that are free, so no lease ages in a queue.
//     At most Workers handlers run, beside those that are stuck (below), and at most
//     16 times as many finished tasks wait for the store's answer. With a BatchHandler a
//     call has up to BatchSize tasks, and both bounds hold for that many more.
//   - A handler whose claim was answered too late, or whose process was held up,
//     does not begin once the lease is over. Between that look at the clock and
//     its first step nothing can look again: a pause there, longer than the lease,
//     is a run that the store knows nothing of.
//   - Every claimed task ends in an ack, a retry or a burial, or its lease runs out and
//     the reaper brings it back. A handler's error, panic or runtime.Goexit is a retry
//     with backoff; after the last attempt, or an error made by Permanent, the task is
//     buried with the reason, and stands among the dead in the store: nothing is
//     dropped. An attempt counts when it is claimed, so a task that kills its process
//     is buried, too: by the claim after its last attempt.
//   - While the store is away nothing runs. Ids wait in the ready lists and the
//     claim is repeated until it is answered.
//
// # Leases
//
// A handler may take HandlerTimeout, however short the lease: when a third of it has
// passed, a longer one is asked for, and again, until it outlasts the handler's time.
// The handler's ctx ends when that time is over. It ends sooner, with the cause
// ErrLeaseLost, when a renewal is refused, for then the task is somebody else's; and
// just before the lease as known here is over, for while the store does not answer,
// another instance may be granted the task then.
//
//	at work --- ctx ends, the handler returns --------------> settled
//	   |                                                        ^
//	   +--- ctx ends, and later the lease ---> stuck -----------+ late: refused, if the
//	                                             |                reaper was there first
//	                                             +-> another worker in its stead
//
// A handler that does not heed its ctx is stuck when its lease is over. It is not
// renewed any more, so the reaper brings its tasks back, and they run elsewhere or here,
// beside it. Its worker is replaced; at most Workers are, and then Problems says so.
//
// # The states of an id in memory
//
//	           Offer            take             Claimed            handler returns
//	(not held) -----> ready ----------> claiming -------> running -----------------> finished
//	    ^                                  |  NotYet, Busy, Gone                         |
//	    +----------------------------------+<------- the store has answered -------------+
//
// A held id is not taken twice; what is stuck is not held. When the wheel fires an
// id that is at work (the user moved it meanwhile), it is looked at again once that
// work is settled.
//
// There are two ready lists, each oldest first: fresh, for what came at most a
// second after its due time, and backlog. While both wait, each gives half of
// every claim, so neither an old heap of work nor a new storm starves the
// other.
//
// # Who owns what
//
// Goroutines: the claim loop; the settle loop; the lease loop, and at most one call of
// renewals of its; and one for OnDead, which is the user's code and which nothing else
// waits for. A task is owned by whichever of claim loop, worker and settle loop has it;
// the lists, counts, stages and calls are guarded by one mutex, under which no user
// code, I/O or blocking send happens. While one batch of acks is on its way the next
// gathers. When Stop gives up it owns what the loops had: what has finished is settled,
// what runs or was claimed is handed back by its token, also where the claim has no answer.
//
// # At each crash
//
//   - before the claim: the id is still due in the store, and any instance's sweep
//     finds it;
//   - after the claim, before the handler's effects: the lease runs out, it runs
//     again;
//   - after the effects, before the ack: the same; the second run finds nothing to
//     do, because the effects stand behind the database's conditional update and
//     not behind this package;
//   - after a burial, before OnDead: nobody is told, but the store has the dead. A burial
//     by a claim whose answer is lost is not told either: asked again, it is gone;
//   - the claim's answer is lost: it is repeated under the same token, and the
//     store knows its own claim again.
//
// The pool is github.com/panjf2000/ants/v2. It has no queue, and a task it
// refuses goes back to the store. Importing it starts two goroutines of its
// default pool, which live as long as the process.
package executor

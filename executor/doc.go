// Package executor runs what is due: it claims ids in the store, calls the
// handler on a bounded pool of goroutines, and tells the store what came of it.
//
//	Offer -> ready lists -> claim -> pool -> handler -> ack | retry | bury
//	          (memory)      (store)                         (store)
//
// While the store is away it runs what is due without a claim.
//
// # What it promises
//
//   - The one who offers never blocks: handing over is an append.
//   - While the store answers, a handler runs only under a claim, which the store
//     grants by its own clock: never early, and by one instance at a time for as long
//     as the lease holds.
//   - Ids are claimed for workers that are free, and ahead of those that will be within
//     about 20 ms, at most persist.MaxBatch: see "Claims ahead". No lease ages in a queue.
//     At most Workers handlers run, with claims and without, beside those that are stuck
//     (below), and at most 65 times as many finished tasks wait for the store's answer, which
//     keeps it busy in a storm of quick handlers; 64 times as many more where a shard has left
//     some without an answer (below). With a BatchHandler a call has up to BatchSize
//     tasks, and both bounds hold for that many more. An id never runs twice at once here, but
//     beside a handler that is stuck.
//   - A handler whose claim was answered too late, or whose process was held up,
//     does not begin once the lease is over. Between that look at the clock and
//     its first step nothing can look again: a pause there, longer than the lease,
//     is a run that the store knows nothing of.
//   - Every claimed task ends in an ack, a retry or a burial, or its lease runs out and
//     the reaper brings it back. A handler's error, panic or runtime.Goexit is a retry
//     with backoff; after the last attempt, or an error made by Permanent, the task is
//     buried with the reason, and stands among the dead in the store: nothing is
//     dropped. An attempt counts when it is claimed, so a task that kills its process
//     is buried, too: by the claim after its last attempt. What was claimed ahead when the
//     process died has had an attempt as well, though it had not begun; its next claim waits for
//     a worker, so it loses no more of them to the same killer but where they begin together.
//   - While the store is away, what is due runs without a claim, by the rules below;
//     with RequireClaim nothing runs. Either way all of it is claimed and run in the
//     ordinary way once the store is back.
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
// beside it. Its worker is replaced; at most Workers are, and then Problems says so. A run
// without a claim has no lease, but is stuck when it would be with one that was renewed: it
// counts as ended then, and its id is claimed, and runs, when the store is back.
//
// # Claims ahead
//
// A call of the store costs much by itself and little for each id in it, and while it is
// under way a handler that takes a millisecond could run a few times. So as many ids are
// claimed ahead as the workers are expected to begin within 20 ms, by the time that calls
// of the handler have taken lately: none where they take longer than that for each
// worker, a thousand where they take next to nothing. A worker that has finished takes the next
// of these itself. An id whose lease was over is not claimed ahead, since its process may
// have died of it, or of one beside it. What finishes while others are at work waits for
// them, a millisecond at most, before the store is told of all of them.
//
// To the store such an id is running: a cancel says that it has started, and no other
// instance gets it. So where the workers are held up after all it is handed back, uncounted,
// when it has waited for a third of its lease, and nothing more is claimed ahead until
// they are fast again. Stop hands it back at once. While a shard of the store is away
// nothing is claimed ahead from the others, for else its runs without a claim, which need
// workers that are free, would wait for the end of a storm there.
//
// # The states of an id in memory
//
//	           Offer            take             Claimed            handler returns
//	(not held) -----> ready ----------> claiming -------> running -----------------> finished
//	    ^                                  |  NotYet, Busy, Gone                         |
//	    +----------------------------------+<------- the store has answered -------------+
//
// While its shard is away an id waits aside instead of being claimed, and may run
// meanwhile; so may the ids of the one claim that has no answer, which are claiming. A claim
// that is answered when there is no free worker, as one made ahead of it, or beside a run of
// that id without it, is granted: it waits for the worker, or for the end of that run.
//
// A held id is not taken twice; what is stuck is not held. When the wheel fires an
// id that is at work (the user moved it meanwhile), it is looked at again once that
// work is settled.
//
// There are two ready lists, each oldest first: fresh, for what came at most a
// second after its due time, and backlog. While both wait they take turns, from one claim to
// the next as well, so neither an old heap of work nor a new storm starves the other.
//
// # When the store is away
//
// Each shard of the store is claimed by a call of its own. If that has no answer after
// 250 ms the shard is away, until it has one. Nothing else is asked of it meanwhile: the
// call goes on, under its token, so that no lease is lost that it may have got. The
// workers that it had spoken for are free. What is due there by the lower bound of the
// store's clock (see Clock.LowerMS in package recovery) runs without a claim, the ready
// lists in their order. The handler's conditional update makes that safe, not a claim.
//
// Such a run is one more, and changes nothing in the store: when the shard is back all of
// it is claimed, oldest first, and runs again, as if it had not run. Most of these runs
// find nothing to do. One that succeeded, or that said Permanent, is not repeated before
// that; one that failed comes again after its backoff, and RetryAt at its time.
//
// The end of a task, an ack as well as a retry or a burial, that a shard leaves without an
// answer is asked for again, apart from those of the other shards, and so is all that follows
// there until it answers. The others have waited for it once then, for Patience. (For a shard
// that answers late, but within Patience, they wait each time.)
//
// What the user of this instance was told holds for these runs too:
//
//   - None begins while a call of the user on its id is open, or when the last one had an
//     unknown outcome: until a later call on it is answered, or its claim is (unless
//     that says that it is not due yet).
//   - An answered call voids what was outstanding. What was cancelled does not run, and what
//     was moved does not before its new time, also if the wheel had fired it before or a
//     page of the store says otherwise. An answer of the store to an older question arms
//     nothing (see package internal/arming).
//   - A run that is at work when a call is answered does not come again by itself if it
//     fails. A cancel answers that it has started.
//
// What remains: only a claim makes a cancel's answer and "never early" final. During an
// outage an instance may call the handler for an id that another has cancelled, moved,
// or run; and a store that takes longer than 250 ms for an answer is away, too. RequireClaim
// excludes that.
//
// Memory: an id stays held until it is claimed, so a long outage holds what the wheel had
// armed when it began and has fired since; nothing new comes, for a Schedule is not
// answered. It is not Ready, and a sweep of the other shards goes on. Of the user's calls
// the open ones are remembered, at most 65,536 of unknown outcome, and for a moment those
// that were answered. With more of unknown outcome nothing runs without a claim, and Problems
// says so.
//
// # Who owns what
//
// Goroutines: the claim loop, and each claim under way, at most one for each shard; the
// settle loop, and one for each shard that has left an end without an answer, until it answers;
// the lease loop, and at most one call of renewals of its; and one for OnDead, which is the
// user's code and which nothing else waits for. A task is owned by whichever of claim,
// worker and settle loop has it. A run without a claim owns a copy, and the task
// goes its way beside it. The lists, counts, stages, calls and outages are guarded by one
// mutex, under which no user code, I/O or blocking send happens. While one batch of acks is
// on its way the next gathers. When Stop gives up it owns what the loops had: what has
// finished is settled, what runs or was claimed is handed back by its token, also where the
// claim has no answer.
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
//   - in an outage, after a run without a claim: it is due in the store, or claimed; it
//     runs again, and the second run finds nothing to do;
//   - the claim's answer is lost: it is repeated under the same token, and the
//     store knows its own claim again.
//
// The pool is github.com/panjf2000/ants/v2. It has no queue, and a task it
// refuses goes back to the store. Importing it starts two goroutines of its
// default pool, which live as long as the process.
package executor

// Package persist keeps the tasks in Redis: which id is due when, and who is
// working on it. It is the truth; the wheel in memory is a copy of its
// nearest part.
//
// # Stores
//
// Store is the contract, and the table of states below is every store's. Redis is the store
// for work; what is said here of keys, of lost answers and of crashes is said of
// it. Memory keeps the tasks in this process, for tests and where they need not outlive
// it. Package persisttest is the suite that both pass, and any other has to.
//
// # What it promises
//
//   - A task whose Schedule returned nil stays until it is acknowledged, cancelled or
//     buried. A claim that nobody settles comes back when its lease ends.
//   - No claim succeeds before the task's due millisecond by the clock of Redis,
//     whatever the clock of the caller shows.
//   - Of all claims of one due task, by any number of processes, one succeeds.
//   - What Cancel answered Cancelled will not run, unless it is scheduled again.
//   - What is dead will not run, unless it is requeued or scheduled again, and
//     stays until it is that or discarded.
//   - Each call is atomic for each chunk of MaxBatch ids, and an id that stands in a
//     batch twice is treated as if asked one after the other.
//
// # States
//
// An id stands in due, in running, or in dead, or nowhere.
//
//	              claim: attempt + 1, a token, a lease
//	      +-----+ ------------------------------------> +---------+
//	----> | due |                                       | running | ----> gone
//	  ^   +-----+ <------------------------------------ +---------+  ack
//	  |    |  ^ |     retry: at the time it names            |
//	  |    |  | |     reap: now, marked lost                 | bury
//	  |    |  | |     any of ack, retry, bury, reap:         v
//	  |    v  | |     at its successor's time, afresh     +------+
//	  | gone  | +---------------------------------------> | dead | ----> gone
//	  | cancel|       claim, after its last attempt       +------+  discard
//	  |       +----------------------------------------------+
//	schedule          requeue: now, afresh; schedule: likewise, at its time
//
//	schedule  gone, due, dead -> due: attempt 0, no flags; the last one wins
//	          running: sets the successor, the time to be due again afterwards
//	cancel    due -> gone: Cancelled; Running if it is marked lost
//	          running: no successor, and no retry: Running
//	          dead: NotFound, and it stays dead
//	          gone: NotFound
//	claim     due, its time has come -> running: Claimed, attempt and first due
//	          due, its time has come, no attempt left -> dead: Buried
//	          due, later: NotYet, and how long
//	          running: Busy; Claimed again if the token is the same
//	          dead, gone: Gone
//	ack       running -> gone: Settled
//	retry     running -> due at the time it names: Scheduled
//	bury      running -> dead now, with a reason: Settled
//	renew     running: a longer lease, never a shorter one
//	reap      running, lease over -> due now, marked lost
//	requeue   dead -> due now: attempt 0, no flags: Scheduled; else Refused
//	discard   dead -> gone; else nothing
//
// Ack, retry, bury and reap end a run. Before they do what the table says they look at
// what happened meanwhile: a successor wins and is due, else a cancel wins and
// the task is gone. Ack, retry, bury and renew need the token of that very claim and
// are refused without. A retry may be uncounted (the attempt is taken back; the
// first of all leaves no trace, so that the new time becomes the first due) and may be
// marked lost: the handler may still be at work, so a cancel must not promise
// that it will not run. The mark goes with the next ack, bury or schedule.
//
// # Keys
//
// All under one hash tag, so that each script stays in one slot of a Cluster. With the
// Namespace orderwheel:
//
//	{orderwheel:0}:due      ZSet: id, score = due, Unix milliseconds
//	{orderwheel:0}:running  ZSet: id, score = end of the lease, Unix milliseconds
//	{orderwheel:0}:claims   hash: id -> token attempt flags first-due successor
//	{orderwheel:0}:dead     ZSet: id, score = when it was buried, Unix milliseconds
//	{orderwheel:0}:reasons  hash: id -> attempt first-due reason
//
// claims has the ids that are running or being retried, so a task that is due for
// the first time costs one ZSet entry and nothing else. - stands for what is not
// there; flags are c (cancelled) and l (lost). reasons has the dead; the reason is the rest
// of its record, any bytes, and nothing depends on it. No key has a TTL, and none is left when no
// task is. An operator asks:
//
//	redis-cli ZCARD   '{orderwheel:0}:due'                         how many are pending
//	redis-cli ZSCORE  '{orderwheel:0}:due' ORDER                   when is it due
//	redis-cli ZRANGE  '{orderwheel:0}:due' 0 9 WITHSCORES          the next ten
//	redis-cli ZCOUNT  '{orderwheel:0}:due' -inf $(date +%s000)     how many are overdue
//	redis-cli HGET    '{orderwheel:0}:claims' ORDER                who runs it, which attempt
//	redis-cli ZADD    '{orderwheel:0}:due' XX 0 ORDER              make it due now
//	redis-cli ZREM    '{orderwheel:0}:due' ORDER                   forget it
//	redis-cli ZCARD   '{orderwheel:0}:dead'                        how many are dead
//	redis-cli ZRANGE  '{orderwheel:0}:dead' 0 9 WITHSCORES         the ten that died first
//	redis-cli HGET    '{orderwheel:0}:reasons' ORDER               why it died
//	redis-cli ZADD    '{orderwheel:0}:due' $(date +%s000) ORDER    bring it back to life
//	redis-cli ZREM    '{orderwheel:0}:dead' ORDER                  forget that it died
//	redis-cli ZREMRANGEBYRANK '{orderwheel:0}:dead' 0 -1001        keep the last thousand
//
// Writing by hand is safe: a lease that was removed is found and taken back, a record
// without its task is dropped, a task made due while it runs becomes its successor,
// one that is among the dead and in due or running lives, a dead one without a reason is
// dead, a reason of another form is taken as it stands, a score that is no whole
// millisecond is rounded up. (The bisection behind Window and Dead takes scores as whole,
// too: a page that ends within a broken millisecond may leave out others of it until
// the next pass.)
//
// # When answers are lost
//
// A call is repeated, with growing waits, until it is answered or its ctx ends; go-redis
// itself repeats none of our commands. So a copy of a call may have been
// applied already, or may be applied late. What a repeated call then answers:
//
//	Schedule  the same: the last one wins
//	Cancel    the same, but NotFound for what the lost copy cancelled
//	Claim     the same claim: token and ids are the same; Buried for what is dead
//	Ack       Settled or Scheduled, as the lost copy; Refused only if a
//	          successor of it runs already
//	Retry     likewise; Scheduled where it stands
//	Bury      likewise; Settled where it is dead
//	Renew     the same
//	Requeue   Scheduled, as the lost copy; Refused if it runs already
//	Discard   the same, but false for what the lost copy discarded
//	Reap      what the lost copy took back stands in due, and the sweep finds it
//
// When ctx ends first, the error wraps ErrUnknownOutcome. Each call may then be made
// again, and answers as above but for Ack, Retry, Bury and Requeue: made anew they do not know of
// the lost copy, and Refused may mean that it was applied. Likewise a Claim made anew
// says Gone of what its lost copy buried.
//
// Not covered: a copy that Redis executes after later calls. (The connection hung, the
// call was repeated on another, and went on.) A late Schedule brings back a task that
// was cancelled or done, whose handler then finds nothing to do; a late Cancel
// removes one scheduled again; a late Claim holds a task until its lease ends; a late Requeue
// or Discard hits one that died once more. Late copies of Ack, Retry and Bury change nothing, as
// their claim is over; one of Renew at most makes the same claim's lease longer. It takes a
// network that delivers after the timeout of the client.
//
// # When something crashes
//
//   - The process, before Schedule returned: the task is there or it is not.
//   - The process, between claim and ack: the lease ends, reap makes the task due, it runs again.
//     Its effects are to be idempotent.
//   - The process, after the handler and before ack: the same. Before bury: it runs
//     once more, and is buried then.
//   - The process, in every run of one task: each lease that ends was an attempt, and
//     the claim after the last one allowed buries it.
//   - The process, between requeue and arming it: it is due in Redis, and the sweep finds it.
//   - Redis, with appendonly yes: it restarts with what it had, but for the last
//     second with appendfsync everysec. Leases go on by its clock.
//   - Redis, fails over: what the new primary did not get yet is lost. Redis does
//     not say so.
//   - Redis is full (OOM): Schedule is refused with ErrDegraded and writes nothing; every
//     other call goes on, as it makes room or lets others make it.
//
// # A call that hangs
//
// Every call returns when its ctx ends. go-redis does not always notice: it needs
// ContextTimeoutEnabled to heed a deadline while it waits for a reply, and never
// notices a cancellation there. So an attempt with a ctx that can end runs in a goroutine,
// and if ctx ends first that goroutine is left alone until the client's ReadTimeout
// (with ContextTimeoutEnabled: until the deadline), and its connection is closed
// with it. Without ContextTimeoutEnabled, a Redis that hangs collects one such goroutine for
// each call given up within one PoolTimeout and ReadTimeout: set it.
//
// # The client
//
// It is the caller's, to make and to close: single, Sentinel or Cluster.
//
//	redis.NewClient(&redis.Options{
//		Addr:                  addr,
//		ContextTimeoutEnabled: true,            // heed the deadlines of ctx
//		ReadTimeout:           3 * time.Second, // when a hung connection is given up
//		WriteTimeout:          3 * time.Second,
//		DialTimeout:           2 * time.Second,
//		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
//	})
//
// MaxRetries does not matter here: our commands are sent once, and repeated by this
// package. Check warns of what it can see to be wrong.
//
// # What it leaves to others
//
// When to claim, how often to retry, when to renew and whom to bury is the executor's. How long
// the dead are kept is the operator's: nothing here forgets them. Calling Window
// and Reap regularly is recovery's. Making the close idempotent is the handler's.
// Durability beyond what Redis is configured for is the operator's: what Redis
// lost is known to the order database alone, so after such a loss schedule
// every unpaid order again.
//
// # Inside
//
// Each operation is one script in lua/: common.lua, state.lua and transitions.lua in
// front, the operation last; page.lua in front of those that read page by page. A script
// reads the state of its ids in a few calls, changes it in memory by the transitions, one
// function for each line of the table above, and writes the differences. No transition depends
// on a reason, so reasons are written and removed unread. Times pass as strings, since Redis writes a
// Lua number with 14 digits.
package persist

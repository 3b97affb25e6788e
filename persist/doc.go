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
//   - A write is executed once, however often the network made this store send it.
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
//	schedule,         requeue: now, afresh; schedule: likewise, at its time
//	ensure
//
//	schedule  gone, due, dead -> due: attempt 0, no flags; the last one wins
//	          running: sets the successor, the time to be due again afterwards
//	          gone, dead, and MaxPending are due: nothing, and ErrOverloaded
//	ensure    gone -> due: afresh; else nothing
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
// All of a shard under one hash tag, so that each script stays in one slot of a Cluster.
// With the Namespace orderwheel, shard 0:
//
//	{orderwheel:0}:due      ZSet: id, score = due, Unix milliseconds
//	{orderwheel:0}:running  ZSet: id, score = end of the lease, Unix milliseconds
//	{orderwheel:0}:claims   hash: id -> token attempt flags first-due successor
//	{orderwheel:0}:dead     ZSet: id, score = when it was buried, Unix milliseconds
//	{orderwheel:0}:reasons  hash: id -> attempt first-due reason
//	{orderwheel:0}:sessions hash: session -> number and answer of its last flush
//	{orderwheel:0}:shards   string: how many shards there are
//	{orderwheel:0}:epoch    string: a counter that only rises
//	{orderwheel:0}:reconcile string with a TTL: whose turn it is to reconcile
//
// claims has the ids that are running or being retried, so a task that is due for
// the first time costs one ZSet entry and nothing else. - stands for what is not
// there; flags are c (cancelled) and l (lost). reasons has the dead; the reason is the rest
// of its record, any bytes, and nothing depends on it. No key has a TTL but
// reconcile; when no task is left and no session is (see Close), only shards and epoch are
// there. An operator asks:
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
// reconcile is owner, works or rests, and until when; only shard 0 has it: see TakeTurn. To
// remove it by hand is safe.
//
// With several shards, write to the one that has the id (see Shards): elsewhere nobody
// sees it. Writing by hand is safe: a lease that was removed is found and taken back, a record
// without its task is dropped, a task made due while it runs becomes its successor,
// one that is among the dead and in due or running lives, a dead one without a reason is
// dead, a reason of another form is taken as it stands, a score that is no whole
// millisecond is rounded up. (The bisection behind Window and Dead takes scores as whole,
// too: a page that ends within a broken millisecond may leave out others of it until
// the next pass.)
//
// # Shards
//
// The tasks are spread over shards by the hash of the id (FNV-1a, 32 bits, modulo their
// number): one where there is one server, 16 on a Cluster. Each has its own keys, {orderwheel:0},
// {orderwheel:1} and so on, and its own lanes. A batch is split by shards, and these are asked at
// once. One whose server is away holds up nothing of the others: when ctx ends, its ids are
// Missing in a PartialError, and the others have their answers. Window and Dead read the
// shards in one order. Reap takes from each. Each shard is judged by the clock of its server.
//
// While a Cluster moves a slot, its shard is away until the move is done: scripts name keys that
// do not exist, and Redis answers TRYAGAIN to these. When a master dies, its shards are away
// until its replica has taken over.
//
// The number of shards cannot change while there are tasks. It is stored, and Check
// refuses another.
//
// # Replicas
//
// With WaitReplicas a flush of users is answered when that many replicas have it (WAIT, on the
// connection of the flush). With too few, each of its calls has its answers and
// ErrNotReplicated. A flush waits for the one before it, so give a call a ctx of more than twice
// WaitTimeout. Claims and their ends do not wait: what a failover takes back of them
// runs again, and its effects are idempotent. With WaitFsync the flush is on the disk of the
// server, too, and on those of the replicas (WAITAOF): a crash of all of them loses none of it.
//
// # Group commit
//
// Schedule, Ensure, Cancel, Requeue and Discard of all callers share one lane of a shard; Claim,
// Retry, Bury and Renew another; Ack has a third, so that claims and acks, which are most of a
// storm, do not wait for one another's answers. A lane sends one flush at a time: a script call
// with up to MaxBatch ids of as many calls as came meanwhile, in the order in which they came.
// Nothing waits on a timer: a call that finds its lane idle is sent at once. What waits is
// bounded; who comes with more waits for room until its ctx ends. A call whose ctx ends while it
// waits was not sent.
//
// Between lanes there is no order, and none is needed: an ack is for a claim that was answered,
// by its token. To end a claim without an answer use Retry, which their lane keeps behind it; an
// Ack may overtake it.
//
// An error reply means that nothing of the flush was executed. Each of its calls then
// waits a little and comes again, until its ctx ends. A Redis that is out of memory refuses
// a flush for the schedules in it; the rest is sent again at once without them. (If an
// earlier copy of that flush may have been executed, Redis is asked first.)
//
// # Sessions
//
// A connection that breaks leaves open whether Redis has executed a flush, and a copy that
// hangs somewhere may still be executed, even after later flushes. So each lane has a
// session, numbers its flushes, and has only one on its way:
//
//	number    what the script does
//	higher    applies the flush, and keeps number and answer in sessions
//	the same  answers what it answered, and changes nothing
//	lower     refuses it: it is a copy that comes late
//
// A flush without an answer is sent again under its number, until it is answered or none
// of its callers waits any more. In the latter case each of them got ErrUnknownOutcome, and the
// lane sends an empty flush at once, again and again for a second, unless another write comes:
// when that is answered, or any later one is, nothing of the lost one will be executed any
// more. Until then it may.
//
// After ErrUnknownOutcome the call can be made again. Schedule: the last one wins.
// Cancel: NotFound may stand for what the lost call cancelled. Claim: what it holds is
// Claimed again, what it buried is Gone. Renew: the same. All others: Refused, or false, may
// mean that the lost call was applied.
//
// Not covered: a copy of a write of a process that has died, arriving after the writes of
// another; a Redis that has lost its sessions (it was wiped, or a failover lost the last
// writes) and executes a copy again. Reap has no session: what a lost copy took back stands
// in due, and the sweep finds it. TakeTurn and EndTurn have none either: a copy that comes late
// keeps the others from their turn for as long as it asked for, and nothing else.
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
//     not say so, but the next Epoch does, if a lane's last flush is among it.
//   - Redis is emptied, or restored from an old copy: the next Epoch tells.
//   - Redis is full (OOM): Schedule is refused with ErrDegraded and writes nothing; every
//     other call goes on, as it makes room or lets others make it.
//
// # A call that hangs
//
// Every call returns when its ctx ends; a flush goes on without it while others wait for the
// same one. go-redis does not always notice the end of a ctx: it needs
// ContextTimeoutEnabled to heed a deadline while it waits for a reply, and never
// notices a cancellation there. So an attempt runs in a goroutine that is not the caller's,
// and if ctx ends first that goroutine is left alone until the client's ReadTimeout
// (with ContextTimeoutEnabled, where it is no flush: until the deadline), and its
// connection is closed with it. Without ContextTimeoutEnabled, a Redis that hangs collects one such goroutine for
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
// A client of Sentinels asks all of them at once and waits for all: one that hangs costs a
// DialTimeout. MaxRetries does not matter here: our commands are sent once, and repeated by this
// package. Check warns of what it can see to be wrong.
//
// # What it leaves to others
//
// When to claim, how often to retry, when to renew and whom to bury is the executor's. How long
// the dead are kept is the operator's: nothing here forgets them. Calling Window
// and Reap regularly is recovery's. Making the close idempotent is the handler's.
// Durability beyond what Redis is configured for is the operator's: what Redis
// lost is known to the order database alone, so after such a loss ensure
// every unpaid order.
//
// # How it was checked
//
// exhaustive_test.go has a model of the scripts for one id, guard by guard, and goes
// through every interleaving of two instances with three lanes each, within small bounds: two or
// three schedules, a cancel, one or two claims, one or two of ack, retry, bury and renew, a
// requeue, discard or ensure, reap at any time, leases that run out, a lost answer, one or two late
// copies, a ctx that ends, a crash, and one write by hand; not the most of each at once. The
// promises are checked at each step (exhaustive_story_test.go states them), and each guard is shown to
// be needed, alone or with those that do the same once more. Each different step on the task is
// replayed on Memory, miniredis and Redis. A copy of a dead writer arrives at any time there: its
// call counts as open until it was executed, so that a cancel answered meanwhile may be undone by it.
//
// Not in it: several ids or writes in one flush, more than MaxBatch, MaxPending, a Redis that refuses
// writes or loses them, a fence that gives up after its second, a session forgotten after a
// day while a copy was still on its way.
//
// # Inside
//
// Each operation is one script in lua/: common.lua, state.lua and transitions.lua in
// front, the operation last; page.lua in front of those that read page by page. A script
// reads the state of its ids in a few calls, changes it in memory by the transitions, one
// function for each line of the table above, and writes the differences. In a flush most ids are
// plain: fast.lua does the same for these with fewer steps. No transition depends
// on a reason, so reasons are written and removed unread. Times pass as strings, since Redis writes a
// Lua number with 14 digits.
package persist

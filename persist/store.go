package persist

import (
	"context"
	"time"
)

// Store keeps the tasks: which id is due when, who is working on it, and which are
// dead. Redis is the store for work; Memory is one for tests and for embedding
// without durability. Another is right when it passes persisttest.Run.
//
// # States
//
// An id stands in exactly one place: due, running or dead; or it is nowhere, which
// is gone. The package documentation has the picture, and the table of what each
// operation does in each place. Three things stand with the id where they apply. The
// first due is the due time of its first attempt, and survives retries. The mark
// lost says that the handler of an earlier claim may still be at work: it makes a
// cancel answer Running, and goes with the next ack, burial or schedule. A running
// id may have a successor, the time at which it is due again once the run has
// ended; whatever ends the run, the successor wins and starts afresh: attempt 0, no
// mark, no first due. A cancel takes the successor away and forbids the retry; a
// schedule after it makes a successor again, and the last one wins.
//
// # Batches
//
// Every call that takes a list is atomic for each chunk of MaxBatch of it: other
// callers see all of a chunk or nothing, and a chunk is judged by one reading of
// the clock. Longer lists are split, in order. An id that stands in a list
// twice is treated as if asked one after the other. Answers stand in the
// order asked, one for each. An empty list asks nothing and is no error.
//
// # Clock
//
// The store's clock alone judges what is due, when a lease ends, and when a
// burial was; the caller's clock is never asked. No claim succeeds before the due
// millisecond by that clock, not by one. A lease ends at its millisecond, but
// nothing happens then: until Reap takes the task back, its token settles
// and renews it, and no other claim gets it.
//
// # Errors
//
// ErrInvalid is returned for a wrong argument; it names each field, its value and
// the remedy, and nothing was asked or written. (An id that cannot be is Gone to
// Claim, and refused by Ack, Retry, Bury and Renew: they are asked with what the
// store has answered.) A ctx that has ended, or ends before the answer, is returned
// as its error. Everything else has a class: see ErrRetryable, ErrDegraded and
// ErrFatal, and ErrUnknownOutcome for a write that may have happened. A call that was
// answered in part returns a PartialError, and the answers that there are at
// their places; Missing tells which are not.
//
// Each call may be made again after ErrUnknownOutcome; the package documentation
// says what it then answers. All methods are safe for concurrent use.
type Store interface {
	// Schedule makes each task due at its time, afresh. One that is running gets
	// a successor instead. One that is dead comes back. A time that has passed is
	// due at once. nil: all of them are stored.
	Schedule(ctx context.Context, dues []Due) error

	// Ensure makes each task that stands nowhere due at its time, afresh: true. What is
	// due, running or dead stays as it is: false.
	Ensure(ctx context.Context, dues []Due) ([]bool, error)

	// Cancel answers Cancelled for what was due and is gone now; Running for what
	// has started, and for what was due and marked lost, which is gone too, but
	// whose handler may be at work; NotFound for everything else. A dead id
	// is NotFound and stays dead.
	Cancel(ctx context.Context, ids []string) ([]CancelOutcome, error)

	// Claim takes what is due under token until the lease (rounded up to
	// milliseconds) ends, and counts the attempt: Claimed. NotYet says what is due
	// later; Busy what runs under another token; Gone what is nowhere, or dead.
	// Under the same token it is the same claim again: Claimed, no attempt
	// counted, and the lease starts anew.
	//
	// An attempt over maxAttempts is not made: the task is buried, with a reason that
	// says so, and the answer is Buried. 0: there is no limit.
	//
	// A token is 1 to 64 visible ASCII characters, not a single -, and new for
	// every claim.
	Claim(ctx context.Context, token string, ids []string, lease time.Duration, maxAttempts int) (Claims, error)

	// Ack ends runs that are done. Settled: the task is gone. Scheduled: its
	// successor is due at DueMS. Refused: the token is not that of the current
	// claim, and nothing was changed; so it is below.
	Ack(ctx context.Context, leases []Lease) ([]Settlement, error)

	// Retry ends runs that are to be repeated at DueMS. Scheduled: it is due at
	// DueMS, by this retry or by its successor. Settled: it was cancelled
	// meanwhile, and is gone. See the type for Uncounted and Abandoned. An uncounted
	// first attempt that was not abandoned leaves no trace.
	Retry(ctx context.Context, retries []Retry) ([]Settlement, error)

	// Bury ends runs for good. Settled: the task is dead; or it was cancelled
	// meanwhile, and is gone. Scheduled: its successor is due at DueMS.
	Bury(ctx context.Context, burials []Burial) ([]Settlement, error)

	// Renew makes leases end no sooner than lease from now: never sooner than they
	// would. false: the token is not that of the current claim.
	Renew(ctx context.Context, leases []Lease, lease time.Duration) ([]bool, error)

	// Reap takes back what runs with its lease over, at most limit, the
	// oldest lease first, then by id; in a store of several shards both hold for
	// each. It is due now and marked lost; a successor wins; what was cancelled is
	// gone. Returned is what is due afterwards. Fewer than limit does not mean that
	// none are left.
	Reap(ctx context.Context, limit int) ([]Due, error)

	// Requeue makes dead tasks due now, afresh: Scheduled, with DueMS. Refused: it
	// is not dead.
	Requeue(ctx context.Context, ids []string) ([]Settlement, error)

	// Discard forgets dead tasks. false: it is not dead.
	Discard(ctx context.Context, ids []string) ([]bool, error)

	// Window reads what is due at untilMS or before, in the order of due time, then id by
	// bytes: what stands after the cursor, at most limit. What stays in place while
	// pages are read is read exactly once, whatever is added or removed meanwhile,
	// and however many are due in one millisecond.
	Window(ctx context.Context, after Cursor, untilMS int64, limit int) (Page, error)

	// Dead reads the dead tasks as Window reads the due, by burial, then id.
	Dead(ctx context.Context, after Cursor, limit int) (DeadPage, error)

	// Lookup reads all that is known of each id.
	Lookup(ctx context.Context, ids []string) ([]Record, error)

	// Depth counts what stands where.
	Depth(ctx context.Context) (Depth, error)

	// Epoch tells whether the store has lost writes since it was asked last, as far as
	// it can see. Ask regularly: after a loss, ensure what the order database has.
	Epoch(ctx context.Context) (lost bool, err error)

	// TakeTurn asks for the turn to reconcile with the order database, of which there is
	// one for all who use the store. TurnTaken: it is the owner's until the lease
	// ends. TurnKept: it was already, and the lease begins anew. TurnRefused: another
	// has it, or it rests; left is for how long at most. With force a turn that
	// rests is taken all the same.
	TakeTurn(ctx context.Context, owner string, lease time.Duration, force bool) (turn Turn, left time.Duration, err error)

	// EndTurn gives the turn back. Until rest is over nobody gets it without force.
	// false: the owner did not have it any more, and nothing was changed.
	EndTurn(ctx context.Context, owner string, rest time.Duration) (bool, error)

	// Now reads the clock.
	Now(ctx context.Context) (Sample, error)

	// Check asks, before anything depends on it, whether the store can hold tasks. The
	// warnings say in words what works but may cost tasks or time.
	Check(ctx context.Context) (warnings []string, err error)
}

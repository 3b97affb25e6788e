package persist

import "time"

// Limits of ids and due times, checked before anything is written.
const (
	MaxIDLen     = 256             // bytes; an id has 1 to MaxIDLen bytes of any value
	MaxDueMS     = 253402300799999 // the last millisecond of year 9999
	MaxBatch     = 1000            // ids of one script call; longer batches are split
	MaxReasonLen = 1024            // bytes of a burial's reason; longer ones are cut
)

// Due is one pending task: ID fires at DueMS, Unix milliseconds.
type Due struct {
	ID    string
	DueMS int64
}

// Lease names one claim of one id. Only who knows the token of the current
// claim may settle it.
type Lease struct {
	ID    string
	Token string
}

// CancelOutcome is a cancel's answer.
type CancelOutcome int

// The answers of Cancel.
const (
	NotFound  CancelOutcome = iota // neither due nor running: done, dead, or never was
	Cancelled                      // it was due and will not run, unless scheduled again
	Running                        // it has started; it will not be retried
)

// ClaimState is a claim's answer for one id.
type ClaimState int

// The answers of Claim.
const (
	Gone    ClaimState = iota // no such task: acknowledged, cancelled, or dead before
	Claimed                   // it is the caller's until the lease ends
	NotYet                    // it is due later, by the store's clock
	Busy                      // another claim holds it
	Buried                    // it had its last attempt, and is dead now; it will not run
)

// Claim is the answer for one id.
type Claim struct {
	ID         string
	State      ClaimState
	Attempt    int   // Claimed: 1 for the first run
	FirstDueMS int64 // Claimed: the due time of the first attempt
	DueMS      int64 // NotYet: where it stands now
	LeftMS     int64 // NotYet: how long until then, when Clock was read; at least 1
}

// Claims is the answer for a batch.
type Claims struct {
	Claims []Claim // in the order asked
	NowMS  int64   // the store's clock that judged them; of several shards the one furthest behind
	Clock  Sample  // of that clock

	// Sent is when they were asked for the first time: no lease began before.
	Sent time.Time
}

// Retry puts a claimed task back.
type Retry struct {
	Lease
	DueMS int64

	// Uncounted takes the attempt back, as if it had not been made: the order was
	// extended, or the engine stops before the handler ran.
	Uncounted bool

	// Abandoned marks it lost: its handler may still be at work, so a later
	// cancel answers Running.
	Abandoned bool
}

// SettleState is the answer of Ack, Retry, Bury and Requeue for one id.
type SettleState int

// The answers of Ack, Retry, Bury and Requeue.
const (
	Refused   SettleState = iota // the token is not that of a current claim, or it is not dead; nothing was changed
	Settled                      // nothing is left of the task, or of Bury: it is dead
	Scheduled                    // it is due at DueMS: a successor, the retry itself, or requeued
)

// Settlement is the answer for one id.
type Settlement struct {
	ID    string
	State SettleState
	DueMS int64 // Scheduled: where it stands now
}

// Cursor is a place in the order of due time, then id by bytes. The zero Cursor is before everything.
type Cursor struct {
	DueMS int64
	ID    string
}

// Page is one read of the due tasks.
type Page struct {
	Due   []Due  // oldest first
	Next  Cursor // where the next read goes on
	More  bool   // whether there was more within the bound
	Clock Sample
}

// Sample is one reading of the store's clock: it showed StoreUS (Unix
// microseconds) at some instant between Sent and Received. Both carry the
// local monotonic clock and bracket the one round trip that was answered, not the attempts before it.
type Sample struct {
	Sent, Received time.Time
	StoreUS        int64
}

// Burial ends a run for good: the task is dead, and comes back only when it is
// requeued or scheduled again.
type Burial struct {
	Lease
	Reason string // for the operator; cut to MaxReasonLen bytes
}

// Dead is one dead task.
type Dead struct {
	ID         string
	BuriedMS   int64 // when, by the store's clock
	FirstDueMS int64 // the due time of its first attempt
	Attempt    int   // of the last run; 0: it never ran
	Reason     string
}

// DeadPage is one read of the dead tasks.
type DeadPage struct {
	Dead []Dead // oldest burial first, then by id
	Next Cursor // where the next read goes on: burial, then id
	More bool   // whether there was more
}

// Status says where a task stands.
type Status int

// The places where a task can stand.
const (
	StatusGone Status = iota // nowhere: done, cancelled, discarded, or never was
	StatusDue
	StatusRunning
	StatusDead
)

// Record is all that the store knows of one id.
type Record struct {
	ID     string
	Status Status

	DueMS      int64  // StatusDue: when
	LeaseMS    int64  // StatusRunning: when its lease ends
	FirstDueMS int64  // the due time of the first attempt; 0: it has not run yet
	Attempt    int    // claims so far
	Cancelled  bool   // StatusRunning: it will not be retried
	Lost       bool   // the handler of an earlier claim may still be at work
	Successor  int64  // StatusRunning: when it is due again afterwards; 0: it is not
	BuriedMS   int64  // StatusDead: when
	Reason     string // StatusDead: why
}

// Depth is how many tasks stand where.
type Depth struct {
	Due, Running, Dead int64
}

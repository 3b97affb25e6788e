package executor

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/panjf2000/ants/v2"

	"github.com/orderwheel/orderwheel/internal/arming"
	"github.com/orderwheel/orderwheel/persist"
	"github.com/orderwheel/orderwheel/wheel"
)

const (
	// freshMS divides the ready lists: what was overdue by more when it came in
	// is backlog.
	freshMS = 1000
	// unsettledPerWorker bounds the finished tasks whose acks the store has not
	// answered: with more, no new claims are made.
	unsettledPerWorker = 64
	// offerMost bounds the ids taken in while the mutex is held: of a slot with a hundred
	// thousand the first are claimed while the others come in.
	offerMost = 1024
	// bigMap is from how many entries on an emptied map is replaced.
	bigMap = 4096
	// pause is the wait after an answer that the store's own retries could not
	// mend.
	pause = time.Second
)

// Store is what the executor needs of the persistence.
type Store interface {
	Claim(ctx context.Context, token string, ids []string, lease time.Duration, maxAttempts int) (persist.Claims, error)
	Ack(ctx context.Context, leases []persist.Lease) ([]persist.Settlement, error)
	Retry(ctx context.Context, retries []persist.Retry) ([]persist.Settlement, error)
	Bury(ctx context.Context, burials []persist.Burial) ([]persist.Settlement, error)
	Renew(ctx context.Context, leases []persist.Lease, lease time.Duration) ([]bool, error)
}

// Config is what an Executor is made of. One of Handler and BatchHandler is set.
// Every other field is required, but BatchSize, OnDead and those that say otherwise.
type Config struct {
	Store          Store
	Board          *arming.Board
	Calls          *arming.Calls       // nil: no user calls the store but through this executor
	Patience       time.Duration       // how long an ack may wait for a shard that is away; 0: there is but one
	ShardOf        func(id string) int // which shard of the store has id; nil: there is but one
	Handler        Handler
	BatchHandler   BatchHandler
	BatchSize      int           // most tasks in one call of BatchHandler
	Workers        int           // handlers running at once, at least 1
	Lease          time.Duration // how long a claim holds, and each renewal of it
	HandlerTimeout time.Duration // how long a handler may take
	Backoff        Backoff
	OnDead         func(ctx context.Context, d Dead) // told of each burial; nil: nobody is
	RequireClaim   bool                              // nothing runs without a claim; may be false
	NowMS          func() int64                      // the store's clock, as far as it is known here
	LowerMS        func() int64                      // the same, or less: the store's clock is not behind it
	Observe        func(persist.Sample)              // told each reading of the store's clock
	Logger         *slog.Logger
}

func (c *Config) shardOf(id string) int {
	if c.ShardOf == nil {
		return 0
	}
	return c.ShardOf(id)
}

// Executor claims due ids, runs the handler on a pool, and settles. It is safe
// for concurrent use.
type Executor struct {
	cfg    Config
	size   int // most tasks in one call of the handler
	pool   *ants.Pool
	alarms *alarms

	claimWake  chan struct{} // capacity 1: something is ready, or a worker is free
	settleWake chan struct{} // capacity 1: something has finished
	leaseWake  chan struct{} // capacity 1: a lease needs a look, or a renewal is over
	loops      sync.WaitGroup

	// ctx is the parent of every store call and every handler's ctx. It ends
	// when Stop has waited as long as it was told to.
	ctx    context.Context
	giveUp context.CancelFunc

	idle chan struct{} // closed when stopping and nothing is running or unsettled

	stats struct {
		unclaimed, done, failed, panicked, timedOut, retried, dead, postponed, cancelled, leaseLost, notYet, busy, gone atomic.Uint64
		late                                                                                                            histogram
	}

	mu struct {
		sync.Mutex
		held       map[string]*task // every id in a ready list or at work here
		heldMost   int              // its largest size so far
		fresh      queue            // at most freshMS overdue when they came in
		backlog    queue
		oldTurn    bool               // while both wait, it is the backlog's turn
		running    int                // tasks being claimed, or with a worker of the pool; not those of replaced calls
		spare      int                // how many more tasks the workers spoken for could have had; not replaced ones
		calls      map[*call]struct{} // handed to the pool, and not over; those of runs without a claim are not in it
		stuck      int                // of these, those that are stuck
		extra      int                // of these, those whose worker was replaced: at most Workers
		renewing   bool               // a call of Store.Renew is under way
		finished   []*task            // the handler has returned; the settler has not taken them
		unsettled  int                // finished, or being settled
		settlingAt time.Time          // when the settler took what it is settling; zero: it is idle
		apart      map[int]*apart     // by shard: of finished, those that are asked for apart
		stopping   bool
		isIdle     bool // idle is closed

		asking  int             // claims under way
		away    map[int]*outage // of each shard that is away
		waits   queue           // when ids may run without a claim; also void entries
		claimed []*task         // claimed, waiting for a worker
		ahead   int             // being claimed for workers that are not free yet
		pace    time.Duration   // how long a call of the handler takes, about; 0: nobody knows yet
	}
}

// task is one id in this executor's hands. It goes from a ready list to the
// claim loop, to its worker, to the settler; who has it owns it. Only the
// fields at the end are shared.
type task struct {
	id     string
	source Source

	token     string
	attempt   int
	firstMS   int64
	nowMS     int64     // the store's clock at the claim
	begunMS   int64     // of alone, at the claim
	lease     time.Time // when the lease ends, by the local monotonic clock
	outcome   outcome
	unclaimed bool // a copy, for a run without a claim

	// Guarded by Executor.mu.
	stage       stage
	dueMS       int64     // as the one who offered it knew, or the user's last call
	notBeforeMS int64     // without a claim; never: not at all
	worker      bool      // its claim has spoken for a worker
	reaped      bool      // the lease of its last run was over: not to be claimed ahead
	granted     time.Time // in that stage: since when
	lone        *alone    // nil: it has had nothing to do with an outage
	next        *task     // the wheel fired it while at work: ready when this is settled
	lost        bool      // a renewal was refused: it is somebody else's, and nothing is told of it
}

type stage int

const (
	ready    stage = iota
	aside          // its shard is away: it waits for the end of that, or to run without a claim
	claiming       // the store is asked for it
	granted        // claimed, and waiting for a worker
	running        // claimed, and handed to the pool
	finished       // its handler has returned; the store does not know yet
	leaving        // let go, but a run without a claim is still at work
)

// New makes an executor; it starts nothing.
func New(cfg Config) *Executor {
	e := &Executor{
		cfg:        cfg,
		size:       1,
		claimWake:  make(chan struct{}, 1),
		settleWake: make(chan struct{}, 1),
		leaseWake:  make(chan struct{}, 1),
		idle:       make(chan struct{}),
		alarms:     newAlarms(cfg),
	}
	if cfg.BatchHandler != nil {
		e.size = cfg.BatchSize
	}
	ctx, cancel := context.WithCancel(context.Background())
	e.ctx, e.giveUp = ctx, cancel
	if e.cfg.Calls == nil {
		e.cfg.Calls = new(arming.Calls)
	}
	e.mu.held = make(map[string]*task)
	e.mu.calls = make(map[*call]struct{})
	e.mu.away = make(map[int]*outage)
	e.mu.apart = make(map[int]*apart)
	return e
}

// Start begins to claim and run. Call it once.
func (e *Executor) Start() error {
	// The pool has room to spare, so that Submit never waits: for the replaced workers,
	// and because a worker whose task has returned may take a moment to be back, and
	// when a handler has ended its goroutine ants tells nobody who waits. How many run
	// at once is counted here.
	pool, err := ants.NewPool(3*e.cfg.Workers, ants.WithDisablePurge(true), ants.WithLogger(silent{}))
	if err != nil {
		return fmt.Errorf("executor: starting the pool: %w", err)
	}
	e.pool = pool
	e.alarms.start()
	e.loops.Go(e.claimLoop)
	e.loops.Go(e.settleLoop)
	e.loops.Go(e.leaseLoop)
	return nil
}

// silent keeps ants from writing to stderr: a handler's panic never reaches it.
type silent struct{}

func (silent) Printf(string, ...any) {}

// Offer hands over due ids and returns at once. An id that is held here already
// is not taken again; when the wheel fired it while at work, it is looked at
// again once that work is settled. Offer returns the ids it took.
func (e *Executor) Offer(due []wheel.Due, source Source) (taken []wheel.Due) {
	return e.offer(due, source, false)
}

// OfferReaped is Offer for ids whose lease was over: any of them may have killed its
// process. They are claimed for a worker that is free, not ahead.
func (e *Executor) OfferReaped(due []wheel.Due) (taken []wheel.Due) {
	return e.offer(due, FromRecovery, true)
}

func (e *Executor) offer(due []wheel.Due, source Source, reaped bool) (taken []wheel.Due) {
	if len(due) <= offerMost {
		return e.offerSome(offered{due: due}, source, reaped)
	}
	// What users have said of them the board tells now; what they say until the last is in it
	// remembers with a ticket.
	defer e.cfg.Board.End(e.cfg.Board.Ask())
	var parts []offered
	for some := range slices.Chunk(due, offerMost) {
		parts = append(parts, offered{some, e.cfg.Board.Overruled(some, nil)})
	}
	for _, p := range parts {
		taken = append(taken, e.offerSome(p, source, reaped)...)
	}
	return taken
}

// offered are a few that come in together.
type offered struct {
	due  []wheel.Due
	said map[int]int64 // what users had said of them before: see Board.Overruled
}

// offerSome is offer for a few.
//
// A user's answer reaches the board and what is held here in one step, under the mutex
// (see userAnswered), and so does an id that comes in: either the board is asked after the
// answer, or the answer finds the id.
func (e *Executor) offerSome(o offered, source Source, reaped bool) (taken []wheel.Due) {
	nowMS := e.cfg.NowMS()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.mu.stopping {
		return nil // they stand in the store
	}
	said := e.cfg.Board.Overruled(o.due, o.said)
	for i, d := range o.due {
		t := &task{id: d.ID, dueMS: d.DueMS, notBeforeMS: d.DueMS, source: source, reaped: reaped}
		if saidMS, ok := said[i]; ok {
			t.userSays(max(saidMS, d.DueMS))
		}
		if old, ok := e.mu.held[d.ID]; ok {
			if source == FromWheel && old.stage != ready && old.stage != aside {
				old.next = t
			}
			continue
		}
		e.mu.held[d.ID] = t
		e.mu.heldMost = max(e.mu.heldMost, len(e.mu.held))
		e.readyLocked(t, nowMS)
		if source != FromWheel {
			taken = append(taken, d)
		}
	}
	wake(e.claimWake)
	return taken
}

func (e *Executor) readyLocked(t *task, nowMS int64) {
	t.stage = ready
	if nowMS-t.dueMS <= freshMS {
		e.mu.fresh.push(entry{ms: t.dueMS, t: t})
	} else {
		e.mu.backlog.push(entry{ms: t.dueMS, t: t})
	}
}

// releaseLocked lets go of a task that is settled, or takes it up once more. One
// that was stuck is held no more, or its id is by a later task. While a run of it
// without a claim is at work it stays, so that none begins beside that.
func (e *Executor) releaseLocked(t *task) {
	if e.mu.held[t.id] != t {
		return
	}
	if t.runsAlone() {
		t.stage = leaving
		return
	}
	if t.next != nil && !e.mu.stopping {
		e.mu.held[t.id] = t.next
		e.readyLocked(t.next, e.cfg.NowMS())
		return
	}
	delete(e.mu.held, t.id)
	if len(e.mu.held) == 0 && e.mu.heldMost > bigMap {
		e.mu.held, e.mu.heldMost = make(map[string]*task), 0 // maps do not shrink
	}
}

// idleLocked reports whether Stop has nothing left to wait for, and tells it.
func (e *Executor) idleLocked() bool {
	if !e.mu.stopping || e.mu.running > 0 || e.mu.extra > 0 || e.mu.unsettled > 0 || e.mu.asking > 0 {
		return false
	}
	if !e.mu.isIdle {
		e.mu.isIdle = true
		close(e.idle)
	}
	return true
}

// Ready is how many ids wait to be claimed.
func (e *Executor) Ready() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.mu.fresh.len() + e.mu.backlog.len()
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

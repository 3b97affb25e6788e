package executor

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Dead is a task that has just been buried: it will not run again unless an
// operator requeues it, or it is scheduled anew. A claim buries a task whose
// attempts are used up, though none of the last ones told what came of it: their
// processes died, or their leases ran out.
type Dead struct {
	ID      string
	Due     time.Time // when it was due first; zero where a claim buried it
	Attempt int       // attempts used up
	Reason  string    // as the store keeps it: the text of the last error
	Err     error     // the last error; nil where a claim buried it
}

// maxAlarms bounds the Dead that wait for OnDead.
const maxAlarms = 1024

// alarms tells Config.OnDead of each burial, one after the other, on a goroutine
// of its own: it is the user's code and may take its time, so no task and no
// answer of the store waits for it. When it is behind by maxAlarms, what comes on
// top is not told: the dead are all in the store.
type alarms struct {
	onDead  func(context.Context, Dead) // nil: nobody is told
	timeout time.Duration
	logger  *slog.Logger

	queue  chan Dead
	closed sync.Once
	over   chan struct{} // closed when all has been told, or given up; before start, too

	ctx    context.Context // ends when Stop has waited as long as it was told to
	giveUp context.CancelFunc
}

func newAlarms(cfg Config) *alarms {
	a := &alarms{
		onDead: cfg.OnDead, timeout: cfg.HandlerTimeout, logger: cfg.Logger,
		queue: make(chan Dead, maxAlarms), over: make(chan struct{}),
	}
	a.ctx, a.giveUp = context.WithCancel(context.Background())
	close(a.over)
	return a
}

func (a *alarms) start() {
	if a.onDead != nil {
		a.over = make(chan struct{})
		go a.loop()
	}
}

// tell hands d over and returns at once.
func (a *alarms) tell(d Dead) {
	if a.onDead == nil {
		return
	}
	select {
	case a.queue <- d:
	default:
		a.logger.Error("alarm_dropped", slog.String("id", d.ID))
	}
}

// stop lets OnDead be told what waits, until ctx ends; then it cancels OnDead's own ctx
// and gives it a moment to return. After stop nothing may be told any more. It reports
// whether OnDead has returned for the last time.
func (a *alarms) stop(ctx context.Context) bool {
	a.closed.Do(func() { close(a.queue) })
	select {
	case <-a.over:
		return true
	case <-ctx.Done():
	}
	a.giveUp()
	select {
	case <-a.over:
		return true
	case <-time.After(lastWord):
		return false
	}
}

func (a *alarms) loop() {
	returned := false
	defer func() {
		if !returned { // OnDead has ended the goroutine
			go a.loop()
		}
	}()
	for d := range a.queue {
		if a.ctx.Err() != nil {
			a.logger.Error("alarm_dropped", slog.String("id", d.ID))
			continue
		}
		a.one(d)
	}
	close(a.over)
	returned = true
}

func (a *alarms) one(d Dead) {
	ctx, cancel := context.WithTimeout(a.ctx, a.timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			a.logger.Error("alarm_panicked", slog.String("id", d.ID), slog.Any("panic", p))
		}
	}()
	a.onDead(ctx, d)
}

// full reports whether OnDead is so far behind that it is not told of the next.
func (a *alarms) full() bool { return len(a.queue) == cap(a.queue) }

// buriedByClaim tells that a claim has found t's attempts used up.
func (e *Executor) buriedByClaim(t *task) {
	limit := e.cfg.Backoff.limit()
	e.buried(Dead{ID: t.id, Attempt: limit, Reason: fmt.Sprintf("the last of %d attempts did not say what came of it", limit)})
}

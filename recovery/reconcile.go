package recovery

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/orderwheel/orderwheel/persist"
)

const (
	// turnLease is how long an instance that dies in a round keeps the others from
	// theirs. It is longer than a page may take.
	turnLease = sourceTimeout + 30*time.Second
	// againAfter is the wait after a round that failed, and at most the wait for
	// another's round where there is no time to lose.
	againAfter = 10 * time.Second
	hurry      = time.Second
	looksAgain = 10 * time.Millisecond // at the least
	// lastWord is how long Stop tries to give the turn back.
	lastWord = time.Second
	// shortPatience is how long a page waits for a shard for which one has waited.
	shortPatience = 200 * time.Millisecond
	// enough: so many orders that were read twice are proof enough for an alarm.
	enough = 1000
	// samples is how many ids are logged.
	samples = 5
)

// rounds is the state of the reconciler.
type rounds struct {
	kick   chan struct{} // capacity 1: the store has lost writes
	owner  string        // of the turn, new for each Recovery
	source source
	pulse  pulse

	mu struct {
		sync.Mutex
		last tally // of the last round that went through
	}
}

// tally is what came of one round.
type tally struct {
	orders    int // that the Source told of
	found     int // of these, those that stood nowhere, and were put back
	confirmed int // of these, those that were unpaid still when they were read once more
	refused   int // those that no task can be
	missing   int // those that a shard did not answer for

	foundIDs, refusedIDs []string // some of them
}

func (c *rounds) init() {
	c.kick = make(chan struct{}, 1)
	c.owner = rand.Text()
	c.pulse.event, c.pulse.what = "reconcile_failed", "reconciling with the order database"
}

// reconcileLoop makes a round at Start, every ReconcileEvery, and at once when the store
// has lost writes; each when no other instance has the turn.
func (r *Recovery) reconcileLoop() {
	r.rounds.source.Source = r.cfg.Source
	force := true // whatever other instances did before: this store may be new to us
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-r.rounds.kick:
		case <-timer.C:
		}
		wait := r.reconcile(r.ctx, force || r.losses.pending())
		force = false
		timer.Reset(wait)
	}
}

// reconcile makes one round, if it is this instance's turn. It returns when to look
// again.
func (r *Recovery) reconcile(ctx context.Context, force bool) (wait time.Duration) {
	losses := r.losses.count()
	r.rounds.pulse.begin()
	turn, left, err := r.cfg.Store.TakeTurn(ctx, r.rounds.owner, turnLease, force)
	if err != nil {
		r.rounds.ended(r, tally{}, fmt.Errorf("recovery: asking for the turn to reconcile: %w", err))
		return againAfter
	}
	if turn == persist.TurnRefused {
		if r.losses.pending() { // another's round may have begun before the loss
			return max(min(left, hurry), looksAgain)
		}
		r.rounds.passOn()
		return max(left, looksAgain)
	}
	begun := time.Now()
	t, err := r.walk(ctx, force)
	r.rounds.ended(r, t, err)
	wait = max(r.cfg.ReconcileEvery-time.Since(begun), looksAgain)
	switch {
	case ctx.Err() != nil:
		wait = time.Millisecond // so that the others need not wait
	case err != nil:
		wait = min(againAfter, r.cfg.ReconcileEvery)
	default:
		r.losses.cure(losses)
	}
	endCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWord)
	defer cancel()
	_, _ = r.cfg.Store.EndTurn(endCtx, r.rounds.owner, wait) // else it ends by itself
	if err == nil && r.losses.pending() {
		return looksAgain
	}
	return wait
}

// walk goes through all unpaid orders. hurried: as fast as it can; else it takes half of
// the time.
func (r *Recovery) walk(ctx context.Context, hurried bool) (t tally, err error) {
	var round circle
	renewed := time.Now()
	for after := ""; ; {
		begun := time.Now()
		if begun.Sub(renewed) > turnLease/4 {
			renewed = begun
			if err := r.keepTurn(ctx); err != nil {
				return t, err
			}
		}
		o, err := r.rounds.source.page(ctx, after)
		if err != nil {
			return t, err
		}
		if len(o.ids) == 0 {
			return t, t.fault()
		}
		if round.comesRound(o.last()) {
			return t, fmt.Errorf("%w: %q was reached twice", errCircle, o.last())
		}
		if err := r.restore(ctx, &t, after, o); err != nil {
			return t, err
		}
		after = o.last()
		if !hurried {
			sleep(ctx, time.Since(begun))
		}
	}
}

func (t *tally) fault() error {
	if t.missing > 0 {
		return fmt.Errorf("recovery: the store has not answered for %d of %d unpaid orders", t.missing, t.orders)
	}
	return nil
}

var errTurnLost = errors.New("recovery: another instance has taken the turn to reconcile, since this one took too long")

func (r *Recovery) keepTurn(ctx context.Context) error {
	turn, _, err := r.cfg.Store.TakeTurn(ctx, r.rounds.owner, turnLease, true)
	if err == nil && turn == persist.TurnRefused {
		err = errTurnLost
	}
	return err
}

// restore puts back what of a page stands nowhere in the store.
func (r *Recovery) restore(ctx context.Context, t *tally, after string, o orders) error {
	t.orders += len(o.ids)
	r.stats.reconciled.Add(uint64(len(o.ids)))
	dues := make([]persist.Due, 0, len(o.ids))
	for i, id := range o.ids {
		if d := (persist.Due{ID: id, DueMS: o.dueMS[i]}); canBe(d) {
			dues = append(dues, d)
		} else {
			t.refused++
			t.refusedIDs = sample(t.refusedIDs, id)
			r.stats.refused.Add(1)
		}
	}
	found, err := r.ensure(ctx, t, dues)
	if err != nil || len(found) == 0 {
		return err
	}
	t.found += len(found)
	r.stats.reconcileFound.Add(uint64(len(found)))
	for _, d := range found {
		t.foundIDs = sample(t.foundIDs, d.ID)
	}
	return r.confirm(ctx, t, after, found)
}

// ensure returns those that stood nowhere and are due now. It arms them.
func (r *Recovery) ensure(ctx context.Context, t *tally, dues []persist.Due) (found []persist.Due, err error) {
	patience := r.cfg.Patience
	if t.missing > 0 { // a shard is away: every page would wait for it
		patience = shortPatience
	}
	storeCtx, cancel := within(ctx, patience)
	defer cancel()
	ticket := r.cfg.Board.Ask()
	defer r.cfg.Board.End(ticket)
	ensured, err := r.cfg.Store.Ensure(storeCtx, dues)
	missing := persist.Missing(err, len(dues))
	if err != nil && (len(missing) == len(dues) || ctx.Err() != nil) {
		return nil, fmt.Errorf("recovery: putting unpaid orders back: %w", err)
	}
	t.missing += len(missing)
	for i, yes := range ensured {
		if yes {
			found = append(found, dues[i])
		}
	}
	r.place(ticket, slices.Clone(found), r.cfg.Reconciled)
	return found, nil
}

// confirm reads the page again. An order that was paid or closed between the reading and
// the writing stood nowhere by right, and its task will find nothing to do. One that is
// unpaid still had none, and that is the alarm.
func (r *Recovery) confirm(ctx context.Context, t *tally, after string, found []persist.Due) error {
	if t.confirmed >= enough {
		t.confirmed += len(found)
		return nil
	}
	o, err := r.rounds.source.page(ctx, after)
	if err != nil {
		return err
	}
	unpaid := make(map[string]bool, len(o.ids))
	for _, id := range o.ids {
		unpaid[id] = true
	}
	for _, d := range found {
		if unpaid[d.ID] {
			t.confirmed++
		}
	}
	return nil
}

// canBe tells whether the store takes d.
func canBe(d persist.Due) bool {
	return d.ID != "" && len(d.ID) <= persist.MaxIDLen && d.DueMS >= 0 && d.DueMS <= persist.MaxDueMS
}

func sample(list []string, id string) []string {
	if len(list) < samples {
		list = append(list, id[:min(len(id), persist.MaxIDLen)])
	}
	return list
}

// ended notes and logs what came of a round; an error when it is new, not again while
// it lasts.
func (c *rounds) ended(r *Recovery, t tally, err error) {
	if err == nil {
		c.mu.Lock()
		c.mu.last = t
		c.mu.Unlock()
	}
	log := r.cfg.Logger
	if c.pulse.end(err) && r.ctx.Err() == nil {
		log.Error(c.pulse.event, slog.Any("error", err))
	}
	if t.found > 0 {
		log.Warn("reconcile_found", slog.Int("tasks", t.found), slog.Int("confirmed", t.confirmed),
			slog.Int("orders", t.orders), slog.Any("some", slices.Clone(t.foundIDs)))
	}
	if t.refused > 0 {
		log.Error("reconcile_refused", slog.Int("orders", t.refused), slog.Any("some", slices.Clone(t.refusedIDs)))
	}
}

// passOn notes that the turn is another's: what this instance found last is over, and
// what is wrong now that one tells.
func (c *rounds) passOn() {
	c.pulse.end(nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.last = tally{}
}

// problems says in words what is wrong with the rounds of this instance.
func (c *rounds) problems() (list []string) {
	if text := c.pulse.failing(); text != "" {
		list = append(list, text)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.mu.last.confirmed; n > 0 {
		list = append(list, fmt.Sprintf("%d unpaid orders had no task and were put back by the last reconciliation (among them %q): "+
			"find out why they were not scheduled", n, c.mu.last.foundIDs))
	}
	if n := c.mu.last.refused; n > 0 {
		list = append(list, fmt.Sprintf("%d unpaid orders cannot be scheduled, their ids or times are beyond the limits (among them %q)", n, c.mu.last.refusedIDs))
	}
	return list
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

package recovery

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// lossTold is for how long Problems tells of a loss that nobody can mend here, since
// there is no Source.
const lossTold = time.Hour

// losses are the times that the store has lost writes.
type losses struct {
	mu struct {
		sync.Mutex
		seen    uint64    // so many
		cured   uint64    // the first so many of them have been reconciled
		noticed time.Time // the last one
	}
}

// checkEpoch asks the store whether it has lost writes. Then the order database is
// asked at once for what should stand there; and all is read again, since a copy that
// was restored may have tasks that no wheel knows.
func (r *Recovery) checkEpoch(ctx context.Context) error {
	ctx, cancel := r.patiently(ctx)
	defer cancel()
	lost, err := r.cfg.Store.Epoch(ctx)
	if lost {
		r.stats.lost.Add(1)
		r.losses.add()
		r.cfg.Logger.Error("epoch_lost", slog.Bool("source", r.cfg.Source != nil))
		r.readAgain()
		kick(r.rounds.kick)
	}
	return err
}

func (l *losses) add() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.seen++
	l.mu.noticed = time.Now()
}

// count is how many losses there were.
func (l *losses) count() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.seen
}

// pending tells whether one has not been reconciled.
func (l *losses) pending() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.cured < l.mu.seen
}

// cure notes that the first n were reconciled: the round began after them.
func (l *losses) cure(n uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.cured = max(l.mu.cured, n)
}

func (l *losses) problem(source bool) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	ago := time.Since(l.mu.noticed)
	switch {
	case l.mu.cured == l.mu.seen:
		return ""
	case source:
		return fmt.Sprintf("the store has lost writes %v ago (it was emptied, restored, or failed over), "+
			"and is not reconciled with the order database yet", seconds(ago))
	case ago < lossTold:
		return fmt.Sprintf("the store has lost writes %v ago (it was emptied, restored, or failed over), "+
			"and there is no Source to reconcile with: schedule every unpaid order again", seconds(ago))
	}
	return ""
}

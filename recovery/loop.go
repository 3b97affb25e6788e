package recovery

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// pulse is how a loop fares: what it is called, and since when it has not ended a round
// well.
type pulse struct {
	event string // logged when a round fails
	what  string // in Problems
	pace  time.Duration

	mu struct {
		sync.Mutex
		begun time.Time // of the round under way; zero: there is none
		err   error     // of the last round
		since time.Time // of the first round that failed; zero: the last one went well
	}
}

// stuckAfter is how long a round may take before Problems tells of it.
const stuckAfter = 5 * time.Second

func (r *Recovery) pulse(event, what string, pace time.Duration) *pulse {
	p := &pulse{event: event, what: what, pace: pace}
	r.pulses = append(r.pulses, p)
	return p
}

// loop calls do at the pulse's pace until Stop, and when kick says so. A round that
// fails, or panics, ends no loop: it is logged when that is new, not again while it
// lasts, and the next one covers the same range.
func (r *Recovery) loop(p *pulse, kick <-chan struct{}, do func(context.Context) error) {
	r.loops.Go(func() {
		timer := time.NewTimer(p.pace)
		defer timer.Stop()
		for {
			select {
			case <-r.ctx.Done():
				return
			case <-kick:
			case <-timer.C:
			}
			p.begin()
			err := guarded(func() error { return do(r.ctx) })
			if p.end(err) && r.ctx.Err() == nil {
				r.cfg.Logger.Error(p.event, slog.Any("error", err))
			}
			timer.Reset(p.pace)
		}
	})
}

// guarded turns a panic into an error.
func guarded(do func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("recovery: panic: %v\n%s", v, debug.Stack())
		}
	}()
	return do()
}

func (p *pulse) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.begun = time.Now()
}

// goesOn notes that a round that takes long has come further.
func (p *pulse) goesOn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.mu.begun.IsZero() {
		p.mu.begun = time.Now()
	}
}

// end notes how a round ended, and tells whether it is the first that failed.
func (p *pulse) end(err error) (news bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	begun := p.mu.begun
	p.mu.begun, p.mu.err = time.Time{}, err
	if err == nil {
		p.mu.since = time.Time{}
		return false
	}
	if news = p.mu.since.IsZero(); news {
		p.mu.since = begun
	}
	return news
}

// problem says in words what is wrong; empty: nothing.
func (p *pulse) problem() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if text := p.failingLocked(); text != "" {
		return text
	}
	if !p.mu.begun.IsZero() && time.Since(p.mu.begun) > max(stuckAfter, 5*p.pace) {
		return fmt.Sprintf("%s has waited for an answer for %v", p.what, seconds(time.Since(p.mu.begun)))
	}
	return ""
}

// failing is problem for rounds that may take as long as they like.
func (p *pulse) failing() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failingLocked()
}

func (p *pulse) failingLocked() string {
	if p.mu.since.IsZero() {
		return ""
	}
	return fmt.Sprintf("%s has failed for %v: %v", p.what, seconds(time.Since(p.mu.since)), p.mu.err)
}

func seconds(d time.Duration) time.Duration { return d.Round(time.Second) }

// patiently bounds what may be answered by some shards only.
func (r *Recovery) patiently(ctx context.Context) (context.Context, context.CancelFunc) {
	return within(ctx, r.cfg.Patience)
}

// within bounds ctx; 0: it does not.
func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, d)
}

func kick(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

package faultproxy

import (
	"context"
	"errors"
	"fmt"
)

// ErrClosed is returned for a wait on a proxy that is closed.
var ErrClosed = errors.New("faultproxy: the proxy is closed")

// Counts is what a proxy has seen and done.
type Counts struct {
	Conns     int // connections accepted
	Open      int // of those, not closed yet
	Commands  int // requests read from clients
	Sent      int // requests sent to the server, each copy
	Executed  int // replies that came from the server
	Answered  int // replies that were sent to clients, whole
	Pushes    int // pushes that were sent to clients
	Malformed int // connections cut because they did not speak RESP

	// Faults done.
	CutAtOnce       int // connections cut right after they were accepted
	CutRequests     int
	Hung            int // connections that became half-open
	Held            int // requests and replies
	Doubled         int
	MadeUp          int // replies in place of the server's
	DelayedRequests int
	DelayedReplies  int
	DroppedReplies  int // replies dropped after execution, whether cut or hanging
	CutReplies      int
}

// Counts returns what happened so far.
func (p *Proxy) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.counts
}

// Wait returns nil as soon as the counts satisfy ready, and an error when ctx
// ends or the proxy is closed before. ready is asked again after each change.
func (p *Proxy) Wait(ctx context.Context, ready func(Counts) bool) error {
	return p.wait(ctx, "the counts", func() bool { return ready(p.Counts()) })
}

// note changes the counts, or what else is under p.mu, and wakes those who wait.
func (p *Proxy) note(change func(*Counts)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.mu.counts)
	close(p.mu.changed)
	p.mu.changed = make(chan struct{})
}

// wait asks ready after each change until it is true.
func (p *Proxy) wait(ctx context.Context, what string, ready func() bool) error {
	for {
		p.mu.Lock()
		closed, changed := p.mu.closed, p.mu.changed // before ready looks: no change is missed
		p.mu.Unlock()
		switch {
		case ready():
			return nil
		case closed:
			return ErrClosed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("faultproxy: waited in vain for %s: %w; counts: %+v", what, ctx.Err(), p.Counts())
		}
	}
}

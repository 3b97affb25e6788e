package faultproxy

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// ErrLost is returned for a held request that the server cannot execute any
// more: its connection to the server, or the proxy, is closed.
var ErrLost = errors.New("faultproxy: the held request is lost: its connection to the server is closed")

// Held is a request, or a reply, that waits in the proxy until the test
// releases it. What comes behind it on its connection waits, too.
type Held struct {
	Command

	released    chan struct{}
	releaseOnce sync.Once
	done        chan struct{} // closed: executed, or lost
	doneOnce    sync.Once
	err         error // set before done is closed
}

func newHeld(c Command) *Held {
	return &Held{Command: c, released: make(chan struct{}), done: make(chan struct{})}
}

// Release lets it go on its way. It may be called twice.
func (h *Held) Release() { h.releaseOnce.Do(func() { close(h.released) }) }

// Executed returns nil when the server has executed the request, ErrLost when it cannot any
// more, and an error when ctx ends first. A held reply is of a request that was executed.
func (h *Held) Executed(ctx context.Context) error {
	select {
	case <-h.done:
		return h.err
	case <-ctx.Done():
		return fmt.Errorf("faultproxy: the held %s is not executed: %w", h.Name(), ctx.Err())
	}
}

// settle says what became of the request; the first word counts.
func (h *Held) settle(err error) {
	h.doneOnce.Do(func() {
		h.err = err
		close(h.done)
	})
}

// hold puts a request or a reply where NextHeld finds it.
func (p *Proxy) hold(h *Held) {
	p.note(func(c *Counts) {
		c.Held++
		p.mu.held = append(p.mu.held, h)
	})
}

// NextHeld waits for the next request or reply that is held, and returns each once, in the
// order in which they were held. It returns an error when ctx ends or the proxy is closed.
func (p *Proxy) NextHeld(ctx context.Context) (h *Held, err error) {
	err = p.wait(ctx, "a held command", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.mu.held) == 0 {
			return false
		}
		h, p.mu.held = p.mu.held[0], p.mu.held[1:]
		return true
	})
	return h, err
}

// ReleaseHeld releases all that NextHeld has not returned, and says how many.
func (p *Proxy) ReleaseHeld() int {
	p.mu.Lock()
	held := p.mu.held
	p.mu.held = nil
	p.mu.Unlock()
	for _, h := range held {
		h.Release()
	}
	return len(held)
}

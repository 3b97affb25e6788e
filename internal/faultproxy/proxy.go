package faultproxy

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
)

// Proxy is one proxy before one server. Its methods are safe for concurrent use.
type Proxy struct {
	target string
	addr   string // where it listens, also after Refuse and Listen

	ctx  context.Context // ends with Close
	stop context.CancelFunc
	all  sync.WaitGroup // every goroutine

	// rules has a lock of its own, since user code runs under it.
	rules struct {
		sync.Mutex
		commands func(Command) Action // nil: pass
		conns    func(n int) Welcome  // nil: accept
		asked    int                  // commands so far
		accepted int                  // connections so far
	}

	mu struct {
		sync.Mutex
		closed   bool
		listener net.Listener // nil: connections are refused
		open     map[*conn]struct{}
		held     []*Held // not returned by NextHeld yet
		counts   Counts
		changed  chan struct{} // closed, and replaced, at each change of the above
	}
}

// Start starts a proxy before the server at target (host:port) on a free
// loopback port. It is closed when the test ends.
func Start(t testing.TB, target string) *Proxy {
	t.Helper()
	p, err := New(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// New is Start for where there is no test: Close it.
func New(target string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("faultproxy: no free loopback port: %w", err)
	}
	p := &Proxy{target: target, addr: l.Addr().String()}
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.mu.open = make(map[*conn]struct{})
	p.mu.changed = make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.acceptLocked(l)
	return p, nil
}

// Addr is the host:port where clients find the proxy.
func (p *Proxy) Addr() string { return p.addr }

// SetRule has rule decide about each command from now on; nil lets all pass. It returns
// after a decision that is being made, so what the rule before it has written
// can be read afterwards.
func (p *Proxy) SetRule(rule Rule) {
	p.rules.Lock()
	defer p.rules.Unlock()
	p.rules.commands = rule
}

// SetWelcome has rule decide about each new connection from now on, by its running number from 1;
// nil accepts all.
func (p *Proxy) SetWelcome(rule func(n int) Welcome) {
	p.rules.Lock()
	defer p.rules.Unlock()
	p.rules.conns = rule
}

// Refuse refuses new connections, as a server that is not there does. Those
// that are open go on.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.listener != nil {
		_ = p.mu.listener.Close()
		p.mu.listener = nil
	}
}

// Listen ends Refuse, at the same address. The error is of a foreign process that has
// taken the port meanwhile.
func (p *Proxy) Listen() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.mu.closed:
		return ErrClosed
	case p.mu.listener != nil:
		return nil
	}
	l, err := net.Listen("tcp", p.addr)
	if err != nil {
		return fmt.Errorf("faultproxy: %s is taken meanwhile, run the test again: %w", p.addr, err)
	}
	p.acceptLocked(l)
	return nil
}

// Normal is back to normal: no rules, and new connections are accepted.
// Connections that hang stay so, since no packet of theirs comes back; CutAll ends them. What
// is held stays held.
func (p *Proxy) Normal() error {
	p.SetRule(nil)
	p.SetWelcome(nil)
	return p.Listen()
}

// CutAll closes the connections of all clients. What was sent, or is held, is executed all the same.
func (p *Proxy) CutAll() {
	for _, c := range p.conns() {
		c.cut()
	}
}

// HangAll makes all open connections half-open: the proxy stops to read and
// to answer, and does not close them. New ones are accepted as usual; see SetWelcome.
func (p *Proxy) HangAll() {
	for _, c := range p.conns() {
		c.hang()
	}
}

// conns are the connections that are open.
func (p *Proxy) conns() []*conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]*conn, 0, len(p.mu.open))
	for c := range p.mu.open {
		list = append(list, c)
	}
	return list
}

// Close closes everything and waits for the end of all goroutines. Held requests are lost. It
// may be called twice.
func (p *Proxy) Close() {
	p.note(func(*Counts) { p.mu.closed = true })
	p.Refuse()
	p.stop()
	for _, c := range p.conns() {
		c.ended.set()
		c.cut()
	}
	p.all.Wait()
}

func (p *Proxy) acceptLocked(l net.Listener) {
	p.mu.listener = l
	p.all.Go(func() { p.accept(l) })
}

func (p *Proxy) accept(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return // the listener is closed
		}
		c := newConn(p, client)
		if !p.register(c) {
			_ = client.Close()
			return
		}
		// Asked when CutAll can find it: what an old rule has let hang does not
		// escape it.
		var w Welcome
		c.n, w = p.welcome()
		p.all.Go(func() {
			c.serve(w)
			p.unregister(c)
		})
	}
}

// welcome asks the rule about a new connection.
func (p *Proxy) welcome() (n int, w Welcome) {
	p.rules.Lock()
	defer p.rules.Unlock()
	p.rules.accepted++
	if p.rules.conns != nil {
		w = p.rules.conns(p.rules.accepted)
	}
	return p.rules.accepted, w
}

// decide asks the rule about a command.
func (p *Proxy) decide(c *Command) (a Action) {
	p.rules.Lock()
	defer p.rules.Unlock()
	p.rules.asked++
	c.N = p.rules.asked
	if p.rules.commands != nil {
		a = p.rules.commands(*c)
	}
	return a
}

// register makes Close find the connection, and reports false when it has looked already.
func (p *Proxy) register(c *conn) (ok bool) {
	p.note(func(counts *Counts) {
		if p.mu.closed {
			return
		}
		ok = true
		p.mu.open[c] = struct{}{}
		counts.Conns++
		counts.Open++
	})
	return ok
}

func (p *Proxy) unregister(c *conn) {
	p.note(func(counts *Counts) {
		delete(p.mu.open, c)
		counts.Open--
	})
}

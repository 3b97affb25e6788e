package faultproxy

import (
	"net"
	"sync"
	"time"
)

// maxPending is how many requests of one connection may wait for their answers.
const maxPending = 1024

// conn is one client's connection and its own connection to the server. The
// fields are set before its goroutines start, but for early, which is answer's.
type conn struct {
	p      *Proxy
	n      int
	client net.Conn
	server net.Conn

	pending chan exchange // from ask to answer, in the order of the requests; ask closes it
	replies chan []byte   // from listen to answer; listen closes it
	early   []byte        // a reply that came before its exchange was taken; nil: none

	gone  signal // the client's side is closed
	hung  signal // half-open
	ended signal // nothing more comes from the server or goes to it
}

// signal is an event that happens once.
type signal struct {
	once sync.Once
	c    chan struct{}
}

func newSignal() signal { return signal{c: make(chan struct{})} }

// set makes it happen, and reports whether it had not yet.
func (s *signal) set() (first bool) {
	s.once.Do(func() {
		close(s.c)
		first = true
	})
	return first
}

func (s *signal) isSet() bool {
	select {
	case <-s.c:
		return true
	default:
		return false
	}
}

func newConn(p *Proxy, client net.Conn) *conn {
	return &conn{
		p: p, client: client,
		pending: make(chan exchange, maxPending), replies: make(chan []byte),
		gone: newSignal(), hung: newSignal(), ended: newSignal(),
	}
}

// serve returns when the connection is over and its goroutines have ended.
func (c *conn) serve(w Welcome) {
	defer c.cut()
	switch w {
	case CutAtOnce:
		c.p.note(func(n *Counts) { n.CutAtOnce++ })
		return
	case HangAtOnce:
		c.hang()
		<-c.gone.c
		return
	}
	var d net.Dialer
	server, err := d.DialContext(c.p.ctx, "tcp", c.p.target)
	if err != nil {
		return // the client sees that there is no server
	}
	c.server = server
	var others sync.WaitGroup
	others.Go(c.ask)
	others.Go(c.listen)
	c.answer()
	c.ended.set()
	_ = server.Close()
	if !c.hung.isSet() {
		c.cut()
	}
	for x := range c.pending { // until ask has ended
		x.lose()
	}
	others.Wait()
}

// cut closes the client's side.
func (c *conn) cut() {
	if c.gone.set() {
		_ = c.client.Close()
	}
}

// hang makes the connection half-open.
func (c *conn) hang() {
	if c.hung.set() {
		c.p.note(func(n *Counts) { n.Hung++ })
	}
}

// sleep waits for d, or less if over happens. It reports whether it was d.
func sleep(d time.Duration, over *signal) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-over.c:
		return false
	}
}

package faultproxy

import "errors"

// exchange is one request that is to be answered, or a fault in its place.
type exchange struct {
	Command
	Action
	copies int   // replies that the server will send
	held   *Held // nil: the request was not held
}

// lose says that the server will not answer it.
func (x exchange) lose() {
	if x.held != nil {
		x.held.settle(ErrLost)
	}
}

// ask reads requests and passes them on, until the client is gone or hangs, or the
// server is gone.
func (c *conn) ask() {
	defer close(c.pending)
	in := newReader(c.client, true)
	for {
		raw, err := in.next()
		if errors.Is(err, errMalformed) {
			c.malformed()
		}
		if c.hung.isSet() && err == nil {
			c.park()
		}
		if err != nil || c.gone.isSet() {
			return
		}
		x := exchange{Command: Command{Conn: c.n, Words: words(raw)}}
		if len(x.Words) == 0 {
			continue // Redis does not answer that either
		}
		x.Action = c.p.decide(&x.Command)
		c.p.note(func(n *Counts) { n.Commands++ })
		if !c.pass(x, raw) {
			return
		}
	}
}

// park waits, without reading, until somebody closes the connection.
func (c *conn) park() { <-c.gone.c }

// malformed ends a connection that makes no sense.
func (c *conn) malformed() {
	c.p.note(func(n *Counts) { n.Malformed++ })
	c.cut()
}

// pass does to one request what was decided, and reports whether to read on.
func (c *conn) pass(x exchange, raw []byte) bool {
	if x.DelayRequest > 0 {
		c.p.note(func(n *Counts) { n.DelayedRequests++ })
		if !sleep(x.DelayRequest, &c.ended) {
			return false
		}
	}
	switch x.Fault {
	case CutRequest:
		c.queue(x)
		return false
	case Hang:
		c.queue(x)
		c.park()
		return false
	case AnswerAs:
		return c.queue(x)
	case Hold, HoldAndCut:
		return c.late(x, raw)
	}
	return c.send(x, raw)
}

// late sends a request when the test says so, whether the client is still there or not.
func (c *conn) late(x exchange, raw []byte) bool {
	if x.Fault == HoldAndCut && !c.queue(x) { // without a copy: cut
		return false
	}
	x.held = newHeld(x.Command)
	c.p.hold(x.held)
	select {
	case <-x.held.released:
	case <-c.ended.c:
		x.lose()
		return false
	}
	if !c.send(x, raw) {
		x.lose()
		return false
	}
	return true
}

// send sends a request to the server and has its reply awaited.
func (c *conn) send(x exchange, raw []byte) bool {
	x.copies = 1
	if x.Fault == Twice {
		x.copies = 2
		c.p.note(func(n *Counts) { n.Doubled++ })
	}
	if !c.queue(x) {
		return false
	}
	for range x.copies {
		c.p.note(func(n *Counts) { n.Sent++ })
		if _, err := c.server.Write(raw); err != nil {
			return false // listen notices, too
		}
	}
	return true
}

// queue has answer see to x when what was asked before it is answered.
func (c *conn) queue(x exchange) bool {
	select {
	case c.pending <- x:
		return true
	case <-c.ended.c:
		return false
	}
}

package faultproxy

import "errors"

// listen reads what the server says.
func (c *conn) listen() {
	defer close(c.replies)
	in := newReader(c.server, false)
	for {
		m, err := in.next()
		if errors.Is(err, errMalformed) {
			c.malformed()
		}
		if err != nil {
			return
		}
		select {
		case c.replies <- m:
		case <-c.ended.c:
			return
		}
	}
}

// answer sees to the exchanges one by one, until ask has no more or the server
// is gone.
func (c *conn) answer() {
	for {
		x, ok := c.take()
		if !ok || !c.settle(x) {
			return
		}
	}
}

// take returns the next exchange, and passes on pushes until it comes.
func (c *conn) take() (x exchange, ok bool) {
	for {
		replies := c.replies
		if c.early != nil {
			replies = nil // its exchange was queued before it was sent, so it is there
		}
		select {
		case x, ok = <-c.pending:
			return x, ok
		case m, ok := <-replies:
			if !ok {
				return exchange{}, false
			}
			if !c.push(m) {
				c.early = m
			}
		case <-c.ended.c:
			return exchange{}, false
		}
	}
}

// reply returns the next reply, and passes on pushes until it comes.
func (c *conn) reply() (m []byte, ok bool) {
	if m, c.early = c.early, nil; m != nil {
		return m, true
	}
	for {
		select {
		case m, ok = <-c.replies:
			if !ok || !c.push(m) {
				return m, ok
			}
		case <-c.ended.c:
			return nil, false
		}
	}
}

// push passes m on if it is a push.
func (c *conn) push(m []byte) bool {
	if !isPush(m) {
		return false
	}
	c.tell(m, func(n *Counts) { n.Pushes++ })
	return true
}

// settle sees to one exchange. It reports false when the server is gone.
func (c *conn) settle(x exchange) bool {
	switch {
	case x.Fault == CutRequest:
		c.p.note(func(n *Counts) { n.CutRequests++ })
		c.cut()
		return true
	case x.Fault == HoldAndCut && x.copies == 0:
		c.cut()
		return true
	case x.Fault == Hang:
		c.hang()
		return true
	case x.Fault == AnswerAs:
		c.p.note(func(n *Counts) { n.MadeUp++ })
		c.deliver(x, []byte(x.Reply))
		return true
	}
	var m []byte
	for range x.copies {
		var ok bool
		if m, ok = c.reply(); !ok {
			x.lose()
			return false
		}
		c.p.note(func(n *Counts) { n.Executed++ })
	}
	if x.held != nil {
		x.held.settle(nil)
	}
	c.deliver(x, m)
	return true
}

// deliver gives the client a reply, or what was decided in its place.
func (c *conn) deliver(x exchange, m []byte) {
	if x.DelayReply > 0 {
		c.p.note(func(n *Counts) { n.DelayedReplies++ })
		sleep(x.DelayReply, &c.gone)
	}
	switch x.Fault {
	case DropReply:
		c.p.note(func(n *Counts) { n.DroppedReplies++ })
		c.cut()
	case SwallowReply:
		c.p.note(func(n *Counts) { n.DroppedReplies++ })
		c.hang()
	case CutReply:
		c.tell(m[:len(m)/2], func(n *Counts) { n.CutReplies++ })
		c.cut()
	case HoldReply:
		h := newHeld(x.Command)
		h.settle(nil)
		c.p.hold(h)
		select {
		case <-h.released:
		case <-c.gone.c:
		}
		c.tell(m, func(n *Counts) { n.Answered++ })
	default:
		c.tell(m, func(n *Counts) { n.Answered++ })
	}
}

// tell sends bytes to the client, if it is there and does not hang.
func (c *conn) tell(m []byte, counted func(*Counts)) {
	if c.gone.isSet() || c.hung.isSet() {
		return
	}
	c.p.note(counted)
	if _, err := c.client.Write(m); err != nil {
		c.cut()
	}
}

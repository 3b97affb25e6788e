// Package faultproxy stands between a Redis client and a Redis server in a
// test and does to whole commands what a network, a crash or a failover would:
// the reply is lost after the server has executed the request, the request
// arrives late or twice, the connection breaks or hangs. Only tests import it.
//
//	p := faultproxy.Start(t, server.Addr())
//	c := redis.NewClient(&redis.Options{Addr: p.Addr()})
//	p.SetRule(faultproxy.Only(faultproxy.Every(3, faultproxy.Do(faultproxy.DropReply)), "evalsha", "eval"))
//
// # What it promises
//
//   - Without a rule it changes nothing: every byte arrives, in order.
//   - A rule is asked once about each command, one command at a time, in the
//     order in which they arrived.
//   - On one connection, faults keep the order: what was asked before is answered before.
//   - What counts, counts before its effect is seen: a client that got its
//     reply, or lost its connection, finds that in Counts.
//   - Nothing waits on a timer but the delays that a rule asks for: Wait and NextHeld
//     return when it has happened.
//   - After Close no goroutine and no connection is left.
//
// # What it understands
//
// RESP2 and RESP3, just enough to find where a request and a reply end:
// pipelines, inline commands, nested replies, pushes, attributes. It buffers one
// request and one reply of up to MaxMessage for each connection, and keeps
// account of up to maxPending requests that wait for their answers; then it
// stops reading. What is no RESP, or larger, cuts the connection and counts as
// Malformed. Replies belong to requests by their order, so SUBSCRIBE, MONITOR and
// CLIENT REPLY, which answer more or less than once, are not for it; other
// pushes pass as they come.
//
// # One connection
//
// Each client's connection has a connection to the server of its own, and
// three goroutines:
//
//	client --> ask: reads requests, asks the rule --> server
//	               |
//	               | pending: one exchange for each request, in order
//	               v
//	client <-- answer: takes an exchange, then its reply <-- listen: reads replies <-- server
//
// A fault of a request travels as an exchange, too: so the connection is cut, or hangs, or
// says something made up, when what was asked before has been answered. When
// the client is gone, the requests that were sent are waited for all the same,
// and a held one is sent when it is released.
package faultproxy

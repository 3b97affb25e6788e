// Package orderwheel closes unpaid orders on time. An order app embeds it: when
// an order is created the app schedules its id with the instant it expires,
// when it is paid the app cancels it, and at the instant, never before, the
// engine calls a handler that closes the order.
//
//	order app -> Engine -> persist (Redis) -> wheel -> executor -> handler -> persist
//
// Every task stands in a Redis ZSet before Schedule returns, so a restart
// rebuilds the wheel and loses nothing. This package only wires the rooms
// together; each says in its own documentation what it promises:
//
//   - [github.com/orderwheel/orderwheel/wheel]: ids and due times in memory;
//   - [github.com/orderwheel/orderwheel/persist]: the states of a task, and each
//     change of them as one atomic script;
//   - [github.com/orderwheel/orderwheel/executor]: claim, pool, handler, ack, retry and
//     burial;
//   - [github.com/orderwheel/orderwheel/recovery]: rebuild, what comes near, sweep,
//     reap, the store's clock, and the reconciliation with the order database;
//   - [github.com/orderwheel/orderwheel/order]: the order's own states, and the one
//     transaction that closes it.
//
// # What it promises
//
//  1. At least once. A task whose Schedule returned nil fires until it is
//     acknowledged or cancelled, or is dead after its last attempt.
//  2. Never early, by the store's clock, whatever the local clock does. (While
//     Redis is away, see below.)
//  3. On time, as far as the process gets its share of the machine.
//  4. Effects exactly once, if the handler's effects stand behind a conditional
//     update, as package order's do. The handler itself may run twice.
//  5. A cancel's answer is final. True: it will not run, unless scheduled again.
//     False: it has started, is done, or never was; if it is running it will not be
//     retried. (While Redis is away, see below.)
//  6. Bounded. Memory, goroutines and Redis commands grow with what is due within
//     the Horizon, not with the length of a storm.
//
// # While Redis is away
//
// A task that falls due while Redis gives no answer (for 250 ms) runs anyway: its
// close is safe by the database's conditional update, not by Redis. When Redis is back
// it is claimed and runs once more, and finds nothing to do. What this instance was
// asked to cancel or to move holds for these runs too; of what another was asked, or
// has run, it knows nothing. So only a claim makes a cancel's answer and "never early"
// final: Config.RequireClaim makes tasks wait for one, for handlers that need that.
//
// # Order of writes
//
// Schedule and Cancel write to the store first and to the wheel when the store
// has answered. In the app, schedule before the order's transaction commits: a
// crash between the two leaves an id without an order, which the close answers
// with "unknown order", and never an order that nobody closes. Such an id is
// retried, more and more seldom, with a warning each time, until it is cancelled, or
// dead after Retry.Attempts: cancel when the transaction has certainly failed. After
// an unknown outcome (order.ErrUnknownOutcome) do not: the order may stand, and would
// never be closed. Nor where an order of that id stands already (order.ErrDuplicate):
// the task is its task, to be scheduled again by its own expire_at. Cancel also after a payment has committed: a close that comes first
// finds the order paid and does nothing.
//
// # The dead
//
// What has failed Retry.Attempts times, or for good (executor.Permanent), is not tried
// for ever: it is moved to the dead, with the reason, and OnDead is called. Nothing
// takes it from there but an operator, or the app by scheduling it anew. With the
// defaults that is some 40 minutes after it was due: a database that is away for
// longer leaves its orders there.
//
// # What is left to others
//
// What has to be true of the database stands in package order. All instances of
// one app share one Namespace; each arms what it scheduled and recovered, the
// claim decides who runs a task, and the sweep takes over what a dead instance
// leaves.
package orderwheel

// Package order says what an order that closes on time is: its states, what a payment and a close
// do to it, and what holds between them. It has no I/O. The sqlstore package keeps orders in a SQL
// database; an application with tables of its own implements Closer, and needs nothing else of this
// package.
//
// # States
//
//	        Create: stock locked, coupon frozen
//	                      |
//	                      v        Extend: expire_at moves
//	                   unpaid <----------------------------+
//	                  /      \_____________________________|
//	       Pay       /        \    Close, at expire_at or later; Abandon, at any time
//	stock sold      /          \   stock given back
//	coupon used    v            v  coupon unused again, or expired by its own validity
//	            paid            closed
//	               \            /
//	     another payment: a refund record, one for each payment
//
// What each operation does in each state, and what it answers. There is nothing else (see
// Transitions):
//
//	          absent          unpaid                           paid            closed
//	Create    -> unpaid       duplicate                        duplicate       duplicate
//	Pay       unknown order   -> paid; wrong amount: stays     refund record   refund record
//	Extend    unknown order   expire_at moves                  not unpaid      not unpaid
//	Close     unknown order   -> closed; not yet, held: stays  was paid        closed already
//	Abandon   unknown order   -> closed                        was paid        closed already
//
// A payment that paid the order, told again, is answered as paid already: one payment is never
// money twice.
//
// Neither paid nor closed is ever left. Pay wins as long as the order is unpaid, also past
// expire_at: a customer who paid at the last moment has bought. Whichever transaction commits first
// decides, and the other one finds the order decided. Money for an order that is closed, or that
// another payment paid, becomes a refund record: never a silent drop, and never a closed order
// turned paid.
//
// # The one transaction
//
// A close is one transaction:
//
//  1. UPDATE orders SET status = closed WHERE order_no = ? AND status = unpaid AND expire_at <=
//     now. No row: the order is paid, closed, not yet due or unknown; nothing else happens, and
//     Close says which.
//  2. The locked stock of each line goes back, lines in the order of sku (so no two transactions
//     wait for each other), each guarded by lock_stock >= quantity, each with a ledger row whose
//     key (order_no, sku_id, op) exists once.
//  3. The coupon that this order froze becomes unused, or expired when its own validity is over.
//  4. Commit. Only then does the engine acknowledge the task.
//
// What lives in other systems (the stock of another service, a payment that is reserved) cannot be in
// the transaction. A message for it can: the sqlstore package has an outbox.
//
// Many orders that are due at once may share one transaction, each step of it done for all of them.
// When that fails for any of them, each gets its own.
//
// # Before and after
//
// Before a close the payment provider may be asked, outside of any transaction. Only "not paid"
// closes the order; whatever else it says, the close comes again. After the commit the application
// may be told. What a crash does to the two:
//
//	before    it is repeated with the close, so it must change nothing that matters
//	after     it may never happen, so nothing may depend on it; what must happen goes to the outbox
//
// # Where it can crash
//
//	asked, no transaction  nothing is applied; Close runs again, and asks again
//	before the commit      nothing is applied; the task is still in Redis; Close runs again and closes
//	in the commit          all or nothing, as the database recovers; Close runs again and finds out which
//	commit, then not told  Close runs again, finds the order closed; nobody is told any more
//	commit, then no ack    Close runs again, finds the order closed, changes nothing
//
// There is no state between "closed" and "stock given back" for a crash to leave behind, because
// both are one commit. The handler may run twice; the effects are applied once, since the statement
// of step 1 changes the row for one caller only.
//
// # One clock
//
// A close compares expire_at with the instant that the engine hands to the handler, which is the
// clock of the engine's store, and writes the same instant as closed_at. It reads neither the
// host's clock nor the database's: an order does not close early because one of them is fast.
//
// Instants are stored as Unix milliseconds. expire_at is rounded up (CeilMS), the instant that is
// compared with it is rounded down: never early.
//
// # Tables of your own
//
// Implement Closer on them: one conditional update, the effects in the same transaction, and an
// answer read from the row when nothing was updated. The example shows a whole one. What to mind:
//
//   - Test the number of rows that the UPDATE changed, not a status that was read before it.
//   - Schedule an order before its transaction commits, with the expire_at that the row will have, and
//     cancel it when the transaction has certainly failed: a crash between the two leaves a task
//     without an order, and never an order without a task. Do not cancel after ErrUnknownOutcome, for the
//     order may stand, nor where one of that number stands already, for the task is now that order's:
//     schedule it again by the expire_at of its row.
//   - A DATETIME of whole seconds must hold expire_at rounded up to the second, and Schedule must
//     be given that same second: the order then closes up to a second later than asked, never
//     early. Rounded down, or to the nearest as MySQL does by itself, it closes early.
//   - An order without an expire_at (cash on delivery) is never scheduled; Close answers NotYetDue
//     without a time, and the engine forgets it.
package order

// Package sqlstore keeps orders in a SQL database: it creates, pays, extends, abandons and closes
// them, each in one transaction that is applied whole or not at all. The order package says what
// these mean; a Dialect says what differs between databases.
//
//	db, err := sqlite.Open(ctx, "orders.db") // or mysql.Open, postgres.Open
//	store := sqlstore.New(db, sqlite.Dialect{})
//	err = store.Migrate(ctx)
//
// # Tables
//
//	orders         one row an order: status, expire_at, amount, coupon_id, payment_id, closed_at, ...
//	order_items    its lines
//	user_unpaid    how many unpaid orders each user has
//	sku_stock      units of a sku: stock (free), lock_stock (of unpaid orders), sold
//	stock_ledger   what each order did to each sku: lock, then release or sell; each once, by its key
//	user_coupons   unused -> frozen -> used, or back to unused or expired
//	payments       the id of each payment that was recorded, for one order
//	refunds        money that goes back, one row a payment; sending it is the application's
//	outbox         what closes have to tell other systems, one row a message, and when it was sent
//	close_log      one row for each close that changed something
//
// Instants are Unix milliseconds, money and stock integers. For each sku, stock + lock_stock + sold
// changes only by AddStock; lock_stock is the sum over its unpaid orders, sold over its paid ones.
// A coupon is frozen while the order that names it is unpaid, and used when it is paid. The count of
// user_unpaid is that of the user's unpaid orders.
//
// # How a transaction runs
//
// Its first write decides: an UPDATE with the expected state in its WHERE. The number of changed
// rows, not an earlier read, says who won. Rows are taken in one order: orders, user_unpaid,
// sku_stock by sku, user_coupons. So the statements are right at READ COMMITTED and above, without
// row locks by SELECT. CloseMany, which decides for many orders at once, locks their rows first.
//
// A transaction that others stopped (locked, deadlock, lock timeout), or whose connection was lost
// before the commit, is rolled back and run again, with pauses, until ctx ends or it was tried fifty
// times (order.ErrBusy). Where the database has one writer, the transactions of a Store queue for
// it in the order they came. When ctx ends nothing is applied. When the answer to a commit is lost
// the error is order.ErrUnknownOutcome, and calling again finds out. Errors keep the driver's error
// for errors.As.
//
// # Many at once
//
// CloseMany closes many orders in one transaction, with about as many statements as one close has.
// It skips what others have locked, and closes that, and each order of a transaction that failed, by
// itself. What stays locked is given up after some seconds (order.ErrBusy), and costs the others no more
// than these. The engine uses it so:
//
//	BatchHandler: orderwheel.ClosingMany(store),
//
// # Beyond the tables
//
// Options bound the unpaid orders of a user, have the payment provider asked before a close (Ask),
// the application told after it (AfterClose), and messages left for other systems in the close's own
// transaction (Outbox). A crash repeats the first, may lose the second, and does neither to the
// third: it is sent at least once.
//
// # The engine's source
//
// Unpaid has the form of the engine's Config.Source, so that orders which Redis has lost are
// scheduled again:
//
//	eng, err := orderwheel.New(orderwheel.Config{
//		Redis:   rdb,
//		Handler: orderwheel.Closing(store),
//		Source:  store,
//	})
//
// It reads an index in which the unpaid orders lie together, page by page from the last number on.
//
// # What is left to others
//
// When to call Close is the engine's business, prices and the sending of refunds the application's.
// The store reads no clock, and starts no goroutine that outlives the call. Rows of the outbox that
// were sent stay until the application deletes them (sent_at < ...).
package sqlstore

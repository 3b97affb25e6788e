// Package scheme is what the ways to close unpaid orders have in common, so that they can
// be compared: the orders, the tables, the close, the notes of each call of the handler,
// and the process that runs one scheme. Package bench/schemes drives such processes; those
// whose libraries nobody should download unasked are in bench/peers.
//
// The close is the articles' own: one transaction that closes the order, gives back the
// stock and unfreezes the coupon. Close decides by a conditional update. CloseAsWritten
// looks first and acts then, as the articles' listings do.
package scheme

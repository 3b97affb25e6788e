package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/order/sqlstore"
)

// The invariants, each a query whose rows are violations. only names the one database that knows the
// query.
var invariants = []struct{ name, query, only string }{
	{name: "each sku: lock_stock is what its unpaid orders hold", query: `
		SELECT s.sku_id, s.lock_stock, SUM(i.quantity) AS held FROM sku_stock s
		LEFT JOIN (order_items i JOIN orders o ON o.order_no = i.order_no AND o.status = 'unpaid') ON i.sku_id = s.sku_id
		GROUP BY s.sku_id, s.lock_stock HAVING s.lock_stock <> COALESCE(SUM(i.quantity), 0)`},
	{name: "each sku: sold is what its paid orders bought", query: `
		SELECT s.sku_id, s.sold, SUM(i.quantity) AS bought FROM sku_stock s
		LEFT JOIN (order_items i JOIN orders o ON o.order_no = i.order_no AND o.status = 'paid') ON i.sku_id = s.sku_id
		GROUP BY s.sku_id, s.sold HAVING s.sold <> COALESCE(SUM(i.quantity), 0)`},
	{name: "each line: the ledger has its lock, and one release or sale exactly when the order is closed or paid", query: `
		SELECT i.order_no, i.sku_id, o.status, i.quantity, l.low, l.high, l.locks, l.releases, l.sales FROM order_items i
		JOIN orders o ON o.order_no = i.order_no
		LEFT JOIN (
			SELECT order_no, sku_id, MIN(quantity) AS low, MAX(quantity) AS high,
				SUM(CASE WHEN op = 'lock' THEN 1 ELSE 0 END) AS locks,
				SUM(CASE WHEN op = 'release' THEN 1 ELSE 0 END) AS releases,
				SUM(CASE WHEN op = 'sell' THEN 1 ELSE 0 END) AS sales
			FROM stock_ledger GROUP BY order_no, sku_id
		) l ON l.order_no = i.order_no AND l.sku_id = i.sku_id
		WHERE l.order_no IS NULL OR l.low <> i.quantity OR l.high <> i.quantity OR l.locks <> 1
			OR l.releases <> CASE WHEN o.status = 'closed' THEN 1 ELSE 0 END
			OR l.sales <> CASE WHEN o.status = 'paid' THEN 1 ELSE 0 END`},
	{name: "each payment is recorded for one order, which it paid or whose refund it is", query: `
		SELECT p.payment_id, p.order_no, o.order_no, r.order_no FROM payments p
		LEFT JOIN orders o ON o.payment_id = p.payment_id
		LEFT JOIN refunds r ON r.payment_id = p.payment_id
		WHERE (o.order_no IS NULL) = (r.order_no IS NULL) OR COALESCE(o.order_no, r.order_no) <> p.order_no`},
	{name: "the ledger: each row belongs to a line", query: `
		SELECT l.order_no, l.sku_id, l.op FROM stock_ledger l
		LEFT JOIN order_items i ON i.order_no = l.order_no AND i.sku_id = l.sku_id WHERE i.order_no IS NULL`},
	{name: "each order has a line", query: `
		SELECT order_no FROM orders WHERE order_no NOT IN (SELECT order_no FROM order_items)`},
	{name: "each order with a coupon: frozen by it while unpaid, used by it when paid, not held by it when closed", query: `
		SELECT o.order_no, o.status, c.coupon_id, c.status, c.order_no FROM orders o
		LEFT JOIN user_coupons c ON c.coupon_id = o.coupon_id
		WHERE o.coupon_id IS NOT NULL AND NOT (CASE o.status
			WHEN 'unpaid' THEN COALESCE(c.status = 'frozen' AND c.order_no = o.order_no, FALSE)
			WHEN 'paid' THEN COALESCE(c.status = 'used' AND c.order_no = o.order_no, FALSE)
			ELSE COALESCE(c.order_no <> o.order_no, TRUE) END)`},
	{name: "each coupon that is frozen or used names an order that names it", query: `
		SELECT c.coupon_id, c.status, c.order_no FROM user_coupons c
		LEFT JOIN orders o ON o.order_no = c.order_no AND o.coupon_id = c.coupon_id
		WHERE c.status IN ('frozen', 'used') AND o.order_no IS NULL`},
	{name: "each closed order was abandoned, or closed no earlier than it expired, and is logged once", query: `
		SELECT o.order_no, o.expire_at, o.closed_at, o.close_reason, l.at, l.reason FROM orders o
		LEFT JOIN close_log l ON l.order_no = o.order_no
		WHERE (o.status = 'closed') <> (l.order_no IS NOT NULL)
			OR o.status = 'closed' AND (l.at <> o.closed_at OR l.reason <> o.close_reason
				OR o.close_reason <> 'abandoned' AND (o.closed_at < o.expire_at OR o.expire_at IS NULL))`},
	{name: "each user: the count is that of the unpaid orders", query: `
		SELECT user_id, SUM(counted) AS counted, SUM(unpaid) AS unpaid FROM (
			SELECT user_id, unpaid AS counted, 0 AS unpaid FROM user_unpaid UNION ALL
			SELECT user_id, 0 AS counted, 1 AS unpaid FROM orders WHERE status = 'unpaid') u
		GROUP BY user_id HAVING SUM(counted) <> SUM(unpaid)`},
	{name: "each message of the outbox is of a closed order, and says when and why it was closed", query: `
		SELECT m.order_no, m.kind, o.status, m.reason, m.at FROM outbox m JOIN orders o ON o.order_no = m.order_no
		WHERE o.status <> 'closed' OR m.reason <> o.close_reason OR m.at <> o.closed_at OR m.sent_at < m.at`},
	{name: "each refund belongs to an order that this payment did not pay", query: `
		SELECT r.payment_id, r.order_no, o.status FROM refunds r JOIN orders o ON o.order_no = r.order_no
		WHERE o.status = 'unpaid' OR EXISTS (SELECT 1 FROM orders p WHERE p.payment_id = r.payment_id)`},
	{name: "the file is sound", only: "sqlite", query: `SELECT * FROM pragma_integrity_check WHERE integrity_check <> 'ok'`},
	{name: "no foreign key dangles", only: "sqlite", query: `SELECT * FROM pragma_foreign_key_check`},
}

// violations reads all tables at one instant. The sum of the units added to each sku never changes.
func (s *shop) violations() (found []string) {
	s.t.Helper()
	ctx := context.Background()
	tx, err := s.DB().BeginTx(ctx, &s.db.snapshot)
	require.NoError(s.t, err)
	defer func() { require.NoError(s.t, tx.Rollback()) }()
	for _, inv := range invariants {
		if inv.only != "" && inv.only != s.db.name {
			continue
		}
		for _, row := range readAll(s.t, tx, inv.query) {
			found = append(found, inv.name+": "+row)
		}
	}
	for _, kind := range *s.kinds {
		for _, row := range readAll(s.t, tx, fmt.Sprintf(`
			SELECT order_no, status FROM orders o WHERE status = 'closed'
			AND NOT EXISTS (SELECT 1 FROM outbox m WHERE m.order_no = o.order_no AND m.kind = '%s')`, kind)) {
			found = append(found, fmt.Sprintf("each closed order has its message %q: %s", kind, row))
		}
	}
	for sku, want := range s.initial {
		for _, row := range readAll(s.t, tx, fmt.Sprintf(
			`SELECT stock, lock_stock, sold FROM sku_stock WHERE sku_id = '%s' AND stock + lock_stock + sold <> %d`, sku, want)) {
			found = append(found, fmt.Sprintf("sku %s: %d units were added: %s", sku, want, row))
		}
	}
	return found
}

func readAll(t testing.TB, tx *sql.Tx, query string, args ...any) (out []string) {
	t.Helper()
	rows, err := tx.Query(query, args...)
	require.NoError(t, err, query)
	defer rows.Close()
	cols, err := rows.Columns()
	require.NoError(t, err)
	for rows.Next() {
		vals, ptrs := make([]any, len(cols)), make([]any, len(cols))
		for i := range vals {
			ptrs[i] = &vals[i]
		}
		require.NoError(t, rows.Scan(ptrs...))
		var b strings.Builder
		for i, c := range cols {
			if text, ok := vals[i].([]byte); ok {
				vals[i] = string(text)
			}
			fmt.Fprintf(&b, "%s=%v ", c, vals[i])
		}
		out = append(out, strings.TrimSpace(b.String()))
	}
	require.NoError(t, rows.Err())
	return out
}

// dump is all that the tables hold, a line a row, sorted.
func dump(t testing.TB, s *shop) (rows []string) {
	t.Helper()
	tx, err := s.DB().BeginTx(context.Background(), &s.db.snapshot)
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Rollback()) }()
	for _, table := range tables {
		for _, row := range readAll(t, tx, "SELECT * FROM "+table) {
			rows = append(rows, table+": "+row)
		}
	}
	slices.Sort(rows)
	return rows
}

// The checker itself: each violation, planted, is reported.
func TestTheInvariantsReportWhatIsPlanted(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		for _, c := range []struct{ plant, want string }{
			{`UPDATE sku_stock SET lock_stock = lock_stock + 1, stock = stock - 1 WHERE sku_id = 'a'`, "lock_stock is what"},
			{`UPDATE sku_stock SET sold = sold + 1, stock = stock - 1 WHERE sku_id = 'a'`, "sold is what"},
			{`UPDATE sku_stock SET stock = stock + 2 WHERE sku_id = 'a'`, "100 units were added"},
			{`DELETE FROM stock_ledger WHERE order_no = 'closed' AND op = 'release'`, "each line: the ledger"},
			{`DELETE FROM stock_ledger WHERE order_no = 'open'`, "each line: the ledger"},
			{`UPDATE stock_ledger SET quantity = 1 WHERE order_no = 'paid' AND op = 'sell'`, "each line: the ledger"},
			{`INSERT INTO stock_ledger VALUES ('closed', 'a', 'sell', 2, 0)`, "each line: the ledger"},
			{`INSERT INTO sku_stock VALUES ('z', 0, 0, 0); INSERT INTO stock_ledger VALUES ('open', 'z', 'lock', 1, 0)`, "belongs to a line"},
			{`INSERT INTO orders (order_no, user_id, status, amount, created_at) VALUES ('bare', 'u', 'unpaid', 0, 0); UPDATE user_unpaid SET unpaid = 2`, "has a line"},
			{`UPDATE user_coupons SET status = 'unused', order_no = NULL WHERE coupon_id = 'c1'`, "each order with a coupon"},
			{`UPDATE user_coupons SET status = 'frozen' WHERE coupon_id = 'c2'`, "each order with a coupon"},
			{`UPDATE user_coupons SET status = 'frozen', order_no = 'closed' WHERE coupon_id = 'c3'`, "each order with a coupon"},
			{`UPDATE user_coupons SET status = 'used', order_no = 'none' WHERE coupon_id = 'c4'`, "frozen or used names"},
			{`UPDATE orders SET closed_at = expire_at - 1 WHERE order_no = 'closed'`, "no earlier than it expired"},
			{`DELETE FROM close_log`, "logged once"},
			{`UPDATE close_log SET reason = 'abandoned'`, "logged once"},
			{`INSERT INTO outbox VALUES ('open', 'k', 'timeout', 0, NULL)`, "each message"},
			{`UPDATE outbox SET at = at - 1`, "each message"},
			{`UPDATE outbox SET reason = 'abandoned'`, "each message"},
			{`UPDATE outbox SET sent_at = at - 1`, "each message"},
			{`DELETE FROM outbox`, `has its message "k"`},
			{`UPDATE user_unpaid SET unpaid = 2`, "each user: the count"},
			{`DELETE FROM user_unpaid`, "each user: the count"},
			{`INSERT INTO user_unpaid VALUES ('nobody', 1)`, "each user: the count"},
			{`INSERT INTO payments VALUES ('nobody', 'open')`, "recorded for one order"},
			{`INSERT INTO refunds VALUES ('p', 'paid', 500, '', 0)`, "did not pay"},
			{`INSERT INTO refunds VALUES ('q', 'open', 500, '', 0)`, "did not pay"},
		} {
			t.Run(c.plant, func(t *testing.T) {
				t.Parallel()
				s := unchecked(t, db).with(sqlstore.Options{Outbox: []string{"k"}})
				for _, id := range []string{"c2", "c3", "c4"} {
					require.NoError(t, s.AddCoupon(t.Context(), id, "u", due.Add(ms)))
				}
				s.create("open", withCoupon("c1"))
				s.create("paid", withCoupon("c2"))
				s.create("closed", withCoupon("c3"))
				s.pay(payment("p", "paid"))
				s.close("closed", due)
				require.Empty(t, s.violations())

				for _, stmt := range strings.Split(c.plant, "; ") {
					s.exec(stmt)
				}
				require.Contains(t, strings.Join(s.violations(), "\n"), c.want)
			})
		}
	})
}

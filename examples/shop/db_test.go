package main

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/internal/dbtest"
)

// databases are the flags of each database, made for a test.
var databases = map[string]func(*testing.T) []string{
	"sqlite":   func(t *testing.T) []string { return []string{"-db", t.TempDir() + "/shop.db"} },
	"mariadb":  func(t *testing.T) []string { return []string{"-dsn", dbtest.MariaDB(t).DSN()} },
	"postgres": func(t *testing.T) []string { return []string{"-dsn", dbtest.Postgres(t).DSN()} },
}

func TestTheShopIsTheSameOnEachDatabase(t *testing.T) {
	t.Parallel()
	for name, flags := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := openWith(t, append(flags(t), "-trigger", "both", "-engine-percent", "50", "-scan-every", "50ms", "-time-to-pay", "5s")...)
			a.post("/stock/tea", `{"add":10}`, 200)
			engines, scans := numbers(4)
			for _, no := range append(engines, scans[0]) {
				a.order(no)
				a.post("/orders", orderBody(no), 200)
			}
			a.post("/orders", strings.ReplaceAll(orderBody(engines[0]), "500", "501"), 409)
			a.post("/orders", strings.ReplaceAll(orderBody("big"), ":2", ":5"), 409)
			require.Equal(t, "paid", a.post("/orders/"+engines[0]+"/pay", `{"payment_id":"p","amount":500}`, 200)["outcome"])
			require.Equal(t, "already paid", a.post("/orders/"+engines[0]+"/pay", `{"payment_id":"p","amount":500}`, 200)["outcome"])
			for _, no := range []string{engines[1], scans[0]} {
				a.eventually(func() bool { return a.get("/orders/" + no)["status"] == "closed" })
			}
			a.requireTea(8, 0, 2)
			require.Equal(t, "refunded", a.post("/orders/"+engines[1]+"/pay", `{"payment_id":"q","amount":500}`, 200)["outcome"])
			a.order(scans[1])
			require.Equal(t, "closed", a.post("/orders/"+scans[1]+"/abandon", "{}", 200)["status"])
			a.requireTea(8, 0, 2)
			a.stop()
		})
	}
}

// Of many unpaid orders few are overdue: the scan reads a range of its index.
func TestTheScanIsARangeOfItsIndexOnEachDatabase(t *testing.T) {
	t.Parallel()
	plans := map[string]struct{ explain, analyze, want string }{
		"sqlite":   {"EXPLAIN QUERY PLAN ", "ANALYZE", `USING COVERING INDEX orders_overdue \(expire_at>\? AND expire_at<\?\)`},
		"mariadb":  {"EXPLAIN ", "ANALYZE TABLE orders", "range PRIMARY,orders_unpaid,orders_overdue orders_overdue"},
		"postgres": {"EXPLAIN ", "ANALYZE orders", `(on|using) orders_overdue (?s:.*)Index Cond: \(\(expire_at <= `},
	}
	const each, overdue = 2000, 20
	for name, flags := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := openWith(t, append(flags(t), "-trigger", "scan", "-scan-every", "1h")...)
			db, plan := a.shop.store.DB(), plans[name]
			a.eventually(func() bool { return a.scan.stats().Rounds == 1 }) // so it closes none of these
			exec := func(query string) {
				_, err := db.ExecContext(t.Context(), query)
				require.NoError(t, err)
			}
			var paid, unpaid []string
			for i := range each {
				paid = append(paid, fmt.Sprintf("('p%d', 'ann', 'paid', %d, 1, 'p%d', 1, 1)", i, i, i))
				unpaid = append(unpaid, fmt.Sprintf("('u%d', 'ann', 'unpaid', %d, 1, NULL, 1, NULL)", i, i))
			}
			for _, rows := range [][]string{paid, unpaid} {
				exec(`INSERT INTO orders (order_no, user_id, status, expire_at, amount, payment_id, created_at, paid_at) VALUES ` + strings.Join(rows, ", "))
			}
			exec(plan.analyze)
			got, err := db.QueryContext(t.Context(), plan.explain+a.dialect.Rebind(overdueOrders), overdue, 0, 0, "", scanPage)
			require.NoError(t, err)
			require.Regexp(t, plan.want, textOf(t, got))
		})
	}
}

// textOf is all that a query answered, the columns by spaces.
func textOf(t *testing.T, rows *sql.Rows) string {
	t.Helper()
	defer rows.Close()
	columns, err := rows.Columns()
	require.NoError(t, err)
	var text strings.Builder
	for rows.Next() {
		values := make([]sql.NullString, len(columns))
		dest := make([]any, len(columns))
		for i := range values {
			dest[i] = &values[i]
		}
		require.NoError(t, rows.Scan(dest...))
		for _, v := range values {
			text.WriteString(v.String + " ")
		}
		text.WriteString("\n")
	}
	require.NoError(t, rows.Err())
	return text.String()
}

package main

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/internal/redistest"
	"github.com/orderwheel/orderwheel/order/sqlstore/sqlite"
)

// The real orders are not part of the project: the file is named by the
// environment.
const ordersVariable = "ORDERWHEEL_ORDERS_CSV"

func TestTheRealOrdersComeOutRight(t *testing.T) {
	t.Parallel()
	file := os.Getenv(ordersVariable)
	if file == "" {
		t.Skipf("SKIPPED, NOT TESTED: %s names no file of real orders", ordersVariable)
	}
	t.Run("with Redis in the process", func(t *testing.T) {
		t.Parallel()
		replay(t, file)
	})
	t.Run("with a real Redis", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t)
		replay(t, file, "-redis", server.Addr())
		requireNoKeys(t, server.Client(t))
	})
}

func replay(t *testing.T, file string, flags ...string) {
	t.Helper()
	dir := t.TempDir()
	status, stdout, stderr := runQuickstart(t,
		append(flags, "-orders", file, "-spread", "10s", "-speed", "900", "-json", "-db", dir)...)
	require.Zero(t, status, stderr)
	r := parseReport(t, stdout)
	purchases, err := readOrders(file)
	require.NoError(t, err)
	require.EqualValues(t, len(purchases), r.Orders)
	require.Equal(t, r.Orders, r.Paid+r.Closed)
	require.Empty(t, r.Faults())

	// Who pays long before the timeout or long after it leaves no choice. How
	// long is long depends on the machine: in this run payments and closes were
	// that late.
	const timeout, speed = 30 * time.Minute, 900
	slack := 2 * speed * worstLag(t, dir, purchases, speed)
	mustClose, mayClose := 0, 0
	for _, p := range purchases {
		if !p.pays || p.payAfter > timeout+slack {
			mustClose++
		}
		if !p.pays || p.payAfter >= timeout-slack {
			mayClose++
		}
	}
	t.Logf("closed %d of %d to %d; late_ms %v; by %v", r.Closed, mustClose, mayClose, r.LateMS, r.By)
	require.GreaterOrEqual(t, r.Closed, int64(mustClose))
	require.LessOrEqual(t, r.Closed, int64(mayClose))
}

// worstLag is the longest time by which a payment or the end of a close was
// late.
func worstLag(t *testing.T, dir string, purchases []purchase, speed float64) time.Duration {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(dir, "orders.db"))
	require.NoError(t, err)
	defer db.Close()

	var lastCloseMS int64
	require.NoError(t, db.QueryRowContext(t.Context(), `
		SELECT coalesce(max(c.commit_us / 1000 - o.expire_at), 0) FROM audit_calls AS c JOIN orders AS o USING (order_no)`).Scan(&lastCloseMS))
	worst := time.Duration(lastCloseMS) * time.Millisecond

	payAfter := map[string]time.Duration{}
	for _, p := range purchases {
		payAfter[p.orderNo] = scale(p.payAfter, speed)
	}
	rows, err := db.QueryContext(t.Context(), `
		SELECT order_no, coalesce(paid_at, r.at) - created_at FROM orders LEFT JOIN refunds AS r USING (order_no)`)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var orderNo string
		var afterMS sql.NullInt64
		require.NoError(t, rows.Scan(&orderNo, &afterMS))
		if afterMS.Valid {
			worst = max(worst, time.Duration(afterMS.Int64)*time.Millisecond-payAfter[orderNo])
		}
	}
	require.NoError(t, rows.Err())
	return worst
}

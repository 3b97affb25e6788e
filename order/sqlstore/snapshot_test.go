package sqlstore_test

import (
	"context"
	"database/sql/driver"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/order"
)

// repeatableRead makes connections of MySQL as they are where a program does not use Open.
type repeatableRead struct{ driver.Connector }

func (c repeatableRead) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	_, err = conn.(driver.ExecerContext).ExecContext(ctx, `SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ`, nil)
	return conn, err
}

// The order is placed between the two statements with which Pay begins. The snapshot of the first one
// does not have it.
func TestAPaymentWhoseSnapshotIsOlderThanItsOrderSellsTheStock(t *testing.T) {
	t.Parallel()
	b := named("mariadb")
	connector := b.connector
	b.connector = func(dsn string) (driver.Connector, error) {
		c, err := connector(dsn)
		return repeatableRead{c}, err
	}
	s, c := setupFaulty(t, b)
	var placed atomic.Bool
	c.arm(faults{before: func(_ context.Context, step string) error {
		if step == "exec UPDATE orders" && placed.CompareAndSwap(false, true) {
			s.create("o", withCoupon("c1"))
		}
		return nil
	}})
	require.Equal(t, order.PaidNow, s.pay(payment("p", "o")))
	require.True(t, placed.Load())
	require.Equal(t, [3]int64{98, 0, 2}, s.stock("a"))
	require.Equal(t, [3]int64{97, 0, 3}, s.stock("b"))
	require.Equal(t, "used", s.coupon("c1"))
}

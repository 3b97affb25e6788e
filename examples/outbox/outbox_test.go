package main

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/orderwheel/orderwheel/internal/redistest"
	"github.com/orderwheel/orderwheel/order"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).purgeStaleWorkers"),
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).ticktock"))
}

func TestTheExampleReleasesWhatIsClosedAndTellsSo(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // bounds a hang
	defer cancel()
	var out bytes.Buffer
	require.NoError(t, run(ctx, &out))
	require.Equal(t, `20 orders: 10 paid, 10 closed; the payment service is away
it is back: 10 reservations released, each once
`, out.String())
}

// The app goes away between the closes and their messages, and Redis is lost with it: the messages
// are in the order database.
func TestMessagesOutliveTheAppAndItsRedis(t *testing.T) {
	t.Parallel()
	const n = 50
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	service, err := startPayments()
	require.NoError(t, err)
	defer service.stop()
	service.goAway()
	rdb := redistest.Start(t).Client(t)
	path := filepath.Join(t.TempDir(), "orders.db")
	s, err := openShop(ctx, path, rdb, service.url())
	require.NoError(t, err)
	for i := range n {
		no := fmt.Sprint("order-", i)
		service.reserve(no)
		require.NoError(t, s.place(ctx, no, time.Now().Add(100*time.Millisecond)))
	}
	require.NoError(t, until(ctx, func() bool { return s.closed() == n }))
	require.Equal(t, n, s.unsent(ctx))
	require.NoError(t, s.close())
	require.NoError(t, rdb.FlushAll(ctx).Err())
	require.Zero(t, service.released())

	service.comeBack()
	s, err = openShop(ctx, path, rdb, service.url())
	require.NoError(t, err)
	require.NoError(t, until(ctx, func() bool { return s.unsent(ctx) == 0 }))
	require.NoError(t, service.fault(func(no string) bool {
		_, status, err := s.store.Find(ctx, no)
		return err == nil && status == order.Closed
	}))
	require.Equal(t, n, service.released())
	require.EqualValues(t, n, s.relay.Stats().Recovery.ReconcileFound, "by the Source alone")
	require.NoError(t, s.close())
}

// The check itself: money that is still held, or back twice, is named.
func TestMoneyThatIsNotWhereItMustBeIsNamed(t *testing.T) {
	t.Parallel()
	p := &payments{}
	p.mu.reserved = map[string]int{"held": 1, "twice": -1, "right": 0, "open": 1, "lost": 0}
	err := p.fault(func(no string) bool { return no != "open" && no != "lost" })
	require.ErrorContains(t, err, "held has 1 reservations, and should have 0")
	require.ErrorContains(t, err, "twice has -1 reservations, and should have 0")
	require.ErrorContains(t, err, "lost has 0 reservations, and should have 1")
	require.NotContains(t, err.Error(), "right")
	require.NotContains(t, err.Error(), "open")
}

package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/internal/redistest"
)

func TestAnOrderThatIsNotPaidIsClosedAndItsStockAndCouponComeBack(t *testing.T) {
	t.Parallel()
	a := setup(t, "-time-to-pay", "300ms")
	a.post("/coupons", `{"coupon_id":"c","user_id":"ann","expire_at":"2999-01-01T00:00:00Z"}`, 201)
	with := `{"order_no":"%s","user_id":"ann","amount":450,"coupon_id":"c","items":[{"sku":"tea","quantity":2}]}`
	a.post("/orders", fmt.Sprintf(with, "o1"), 201)
	a.eventually(func() bool { return a.get("/orders/o1")["status"] == "closed" })
	a.requireTea(10, 0, 0)
	a.post("/orders", fmt.Sprintf(with, "o2"), 201) // the coupon is free again
}

func TestACreateMayBeSentAgain(t *testing.T) {
	t.Parallel()
	a := setup(t)
	first := a.order("o1")
	require.Equal(t, expireMS(t, first), a.dueMS("o1"))
	require.Equal(t, first, a.post("/orders", orderBody("o1"), 200))
	require.Equal(t, expireMS(t, first), a.dueMS("o1"))
	a.requireTea(8, 2, 0)

	a.post("/orders", `{"order_no":"o1","user_id":"ann","amount":500,"items":[{"sku":"tea","quantity":3}]}`, 409)
	a.requireTea(8, 2, 0)
	require.Equal(t, expireMS(t, first), a.dueMS("o1"))
}

func TestAnotherCreateOfTheNumberPutsTheTaskRight(t *testing.T) {
	t.Parallel()
	a := setup(t)
	first := a.order("o1")
	_, err := a.shop.engine.Cancel(t.Context(), "o1") // as a double that failed might have
	require.NoError(t, err)
	a.post("/orders", orderBody("o1"), 200)
	require.Equal(t, expireMS(t, first), a.dueMS("o1"))

	require.NoError(t, a.shop.engine.Schedule(t.Context(), "o1", time.Now().Add(time.Hour))) // and one that came later
	a.post("/orders", strings.ReplaceAll(orderBody("o1"), "500", "501"), 409)
	require.Equal(t, expireMS(t, first), a.dueMS("o1"))
}

func TestDoublesOfACreatePlaceOneOrderWithItsTaskAtItsTime(t *testing.T) {
	t.Parallel()
	a := setup(t)
	var wg sync.WaitGroup
	statuses := make([]int, 8)
	for i := range statuses {
		wg.Go(func() { statuses[i] = a.send(a.request("POST", "/orders", orderBody("o1"))).status })
	}
	wg.Wait()
	created := 0
	for _, s := range statuses {
		require.Contains(t, []int{200, 201}, s)
		if s == 201 {
			created++
		}
	}
	require.Equal(t, 1, created)
	a.requireTea(8, 2, 0)
	require.Equal(t, expireMS(t, a.get("/orders/o1")), a.dueMS("o1"))
}

func TestACreateThatFailsLeavesNoTask(t *testing.T) {
	t.Parallel()
	a := setup(t)
	a.post("/orders", `{"order_no":"o1","user_id":"ann","amount":500,"items":[{"sku":"tea","quantity":11}]}`, 409)
	require.Zero(t, a.dueMS("o1"))
	a.requireTea(10, 0, 0)
}

func TestAPaymentMayBeToldAgain(t *testing.T) {
	t.Parallel()
	a := setup(t)
	a.order("o1")
	pay := func(payment string) any {
		return a.post("/orders/o1/pay", `{"payment_id":"`+payment+`","amount":500}`, 200)["outcome"]
	}
	require.Equal(t, "paid", pay("p1"))
	require.Zero(t, a.dueMS("o1"))
	require.Equal(t, "already paid", pay("p1"))
	require.Equal(t, "refunded", pay("p2"))
	a.requireTea(8, 0, 2)
	a.requireStatus("o1", "paid")
}

func TestAPaymentOfAnAbandonedOrderIsRefunded(t *testing.T) {
	t.Parallel()
	a := setup(t)
	a.order("o1")
	for range 2 {
		require.Equal(t, "closed", a.post("/orders/o1/abandon", "", 200)["status"])
		a.requireTea(10, 0, 0)
		require.Zero(t, a.dueMS("o1"))
	}
	require.Equal(t, "refunded", a.post("/orders/o1/pay", `{"payment_id":"p","amount":500}`, 200)["outcome"])
}

func TestAnExtensionMovesTheTaskAndMayBeSentAgain(t *testing.T) {
	t.Parallel()
	a := setup(t)
	a.order("o1")
	to := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
	for range 2 {
		got := a.post("/orders/o1/extend", `{"expire_at":"`+stamp(to)+`"}`, 200)
		require.Equal(t, stamp(to), got["expire_at"])
		require.Equal(t, to.UnixMilli(), a.dueMS("o1"))
	}
	a.post("/orders/o1/extend", `{"expire_at":"`+stamp(to.Add(-time.Second))+`"}`, 422)
	require.Equal(t, to.UnixMilli(), a.dueMS("o1"))
}

func TestWhileRedisIsAwayNoOrderIsPlacedAndPaymentsAreTaken(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a := setup(t, "-redis", server.Addr())
	a.order("o1")
	server.Kill()

	ans := a.send(a.request("POST", "/orders", orderBody("o2")))
	require.Equal(t, http.StatusServiceUnavailable, ans.status, "%v", ans.body)
	require.Equal(t, "1", ans.header.Get("Retry-After"))
	require.Equal(t, 404, a.send(a.request("GET", "/orders/o2", "")).status)
	require.Equal(t, "paid", a.post("/orders/o1/pay", `{"payment_id":"p","amount":500}`, 200)["outcome"])
	require.Equal(t, http.StatusServiceUnavailable, a.send(a.request("GET", "/healthz", "")).status)

	server.Restart()
	a.eventually(func() bool { return a.send(a.request("POST", "/orders", orderBody("o2"))).status/100 == 2 })
	require.Equal(t, expireMS(t, a.get("/orders/o2")), a.dueMS("o2"))
}

func TestWhileTheDatabaseIsAwayTheAnswerIs503(t *testing.T) {
	t.Parallel()
	a := setup(t)
	a.order("o1")
	require.NoError(t, a.shop.store.DB().Close())
	for path, body := range map[string]string{
		"/orders": orderBody("o2"), "/orders/o1/pay": `{"payment_id":"p","amount":500}`, "/orders/o1/abandon": "", "/stock/tea": `{"add":1}`,
	} {
		ans := a.send(a.request("POST", path, body))
		require.Equal(t, http.StatusServiceUnavailable, ans.status, path)
		require.Equal(t, "1", ans.header.Get("Retry-After"))
	}
	require.Zero(t, a.dueMS("o2"))
}

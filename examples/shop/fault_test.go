package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEachFaultHasAStatusAndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	a := setup(t)
	a.order("open")
	a.order("paid")
	a.post("/orders/paid/pay", `{"payment_id":"p","amount":500}`, 200)
	a.post("/coupons", `{"coupon_id":"hers","user_id":"eve","expire_at":"2999-01-01T00:00:00Z"}`, 201)
	item := func(it string) string { return `{"order_no":"n","user_id":"ann","amount":1,"items":[` + it + `]}` }

	for name, c := range map[string]struct {
		request string // method, path, body
		status  int
		says    string
	}{
		"no such path":   {"GET /nowhere", 404, "the path /nowhere is unknown: see the README"},
		"no such order":  {"GET /orders/none", 404, `find order "none": order: no such order: create it first, or look at its number`},
		"no such sku":    {"GET /stock/none", 404, `sku "none" is unknown: add stock of it first`},
		"another method": {"DELETE /stock/tea", 405, "the method is DELETE: use GET, POST"},

		"no body":              {"POST /orders", 400, "the body is empty or ends early: send a JSON object"},
		"half a body":          {`POST /orders {"amount":`, 400, "the body is empty or ends early: send a JSON object"},
		"no JSON":              {"POST /orders {order}", 400, "the body is no JSON at byte 2: invalid character 'o' looking for beginning of object key string"},
		"no object":            {"POST /orders [1]", 400, "the body is a JSON array: send an object"},
		"two objects":          {"POST /orders {} {}", 400, "the body goes on after its JSON object: send one object"},
		"an unknown field":     {`POST /orders {"user":"ann"}`, 400, `the body cannot be taken: unknown field "user": correct it`},
		"a number as text":     {`POST /orders {"amount":"500"}`, 400, "amount is a JSON string: give an integer of at most 19 digits"},
		"a fraction":           {`POST /orders {"amount":5.5}`, 400, "amount is a JSON number 5.5: give an integer of at most 19 digits"},
		"a text as number":     {`POST /orders {"user_id":5}`, 400, "user_id is a JSON number: give a string"},
		"an item as text":      {`POST /orders {"items":["tea"]}`, 400, "items is a JSON string: give an object"},
		"a body without limit": {"POST /orders {" + strings.Repeat(" ", maxBody) + "}", 413, "the body has more than 65536 bytes: send less"},

		"nothing given": {`POST /orders {}`, 422, "order_no is empty or missing: give 1 to 256 bytes; user_id is empty or missing: give 1 to 256 bytes; " +
			"amount is missing: give 0 to 9223372036854775807; items has 0 lines: give 1 to 100"},
		"quantity 0":        {"POST /orders " + item(`{"sku":"tea"}`), 422, "items[0].quantity is 0: give 1 to 1000000000"},
		"a sku twice":       {"POST /orders " + item(`{"sku":"tea","quantity":1},{"sku":"tea","quantity":1}`), 422, `items[1].sku is "tea", that of items[0]: add the quantities up in one line`},
		"a long id":         {"POST /orders " + item(`{"sku":"`+strings.Repeat("x", 257)+`","quantity":1}`), 422, "items[0].sku has 257 bytes: give 1 to 256"},
		"a NUL":             {"POST /orders " + item(`{"sku":"\u0000","quantity":1}`), 422, `items[0].sku is "\x00": give UTF-8 without a NUL`},
		"no text":           {"GET /stock/%FF", 422, `sku is "\xff": give UTF-8 without a NUL`},
		"no text in a body": {"POST /orders " + item("{\"sku\":\"\xff\",\"quantity\":1}"), 422, `without U+FFFD`},
		"half a surrogate":  {"POST /orders " + item(`{"sku":"\ud800","quantity":1}`), 422, `without U+FFFD`},
		"no part of a path": {"POST /orders " + item(`{"sku":"..","quantity":1}`), 422, `items[0].sku is "..": give one that a URL can have`},
		"a number of none":  {"GET /orders/%00", 404, `find order "\x00": order: no such order: create it first, or look at its number`},
		"a negative price":  {`POST /orders/open/pay {"payment_id":"q","amount":-1}`, 422, "amount is -1: give 0 to 9223372036854775807"},
		"another amount":    {`POST /orders/open/pay {"payment_id":"q","amount":499}`, 422, `payment "q" of order "open": order: the payment's amount is not the order's: the order asks for 500, the payment has 499: pay just the amount`},
		"no instant":        {`POST /orders/open/extend {"expire_at":"soon"}`, 422, `expire_at is "soon": give an instant as 2026-01-02T15:04:05Z`},
		"a far instant":     {`POST /orders/open/extend {"expire_at":"2999-01-01T00:00:00Z"}`, 422, "expire_at is 2999-01-01T00:00:00.000Z: give at most 24h0m0s from now"},
		"nothing added":     {`POST /stock/tea {"add":0}`, 422, "add is 0: give 1 to 1000000000000"},

		"sold out":           {"POST /orders " + item(`{"sku":"tea","quantity":7}`), 409, `create order "n": order: not enough stock: sku "tea" has 6, the order asks for 7: order less, or wait for a delivery`},
		"an unknown sku":     {"POST /orders " + item(`{"sku":"gold","quantity":1}`), 409, `create order "n": order: not enough stock: there is no sku "gold": order less, or wait for a delivery`},
		"a coupon of others": {`POST /orders {"order_no":"n","user_id":"ann","amount":1,"coupon_id":"hers","items":[{"sku":"tea","quantity":1}]}`, 409, `create order "n": order: coupon is not usable: coupon "hers" of user "ann": it belongs to another user: leave coupon_id out, or give another one`},
		"a payment of others": {`POST /orders/open/pay {"payment_id":"p","amount":500}`, 409,
			`payment "p" of order "open": order: the payment id belongs to another order: it was recorded for order "paid": give each payment an id of its own`},
		"abandoning a paid one": {"POST /orders/paid/abandon", 409, `order "paid" is paid: give the money back instead`},
		"a coupon that is there": {`POST /coupons {"coupon_id":"hers","user_id":"eve","expire_at":"2999-01-01T00:00:00Z"}`, 409,
			`add coupon "hers": order: number or id exists already`},
	} {
		t.Run(name, func(t *testing.T) {
			method, rest, _ := strings.Cut(c.request, " ")
			path, body, _ := strings.Cut(rest, " ")
			ans := a.send(a.request(method, path, body))
			require.Equal(t, c.status, ans.status, "%v", ans.body)
			require.Contains(t, ans.body["error"], c.says)
		})
	}
	a.requireTea(6, 2, 2)
	require.Equal(t, 404, a.send(a.request("GET", "/orders/n", "")).status)
}

func TestABodyThatIsNotJSONIsRefusedByItsType(t *testing.T) {
	t.Parallel()
	a := setup(t)
	r := a.request("POST", "/orders", orderBody("o1"))
	r.Header.Set("Content-Type", "text/plain")
	ans := a.send(r)
	require.Equal(t, 415, ans.status)
	require.Equal(t, `Content-Type is "text/plain": send application/json`, ans.body["error"])
}

func TestAnOrderThatIsNotUnpaidIsNotExtended(t *testing.T) {
	t.Parallel()
	a := setup(t)
	a.order("o1")
	a.post("/orders/o1/abandon", "", 200)
	due := a.get("/orders/o1")["expire_at"].(string)
	require.Contains(t, a.post("/orders/o1/extend", `{"expire_at":"`+due+`"}`, 409)["error"], "order: not unpaid any more: it is closed")
}

func TestAUserWithTooManyUnpaidOrdersPlacesNoMore(t *testing.T) {
	t.Parallel()
	a := setup(t, "-max-unpaid", "1")
	a.order("o1")
	require.Contains(t, a.post("/orders", orderBody("o2"), 409)["error"], ": pay one of them first, or abandon it")
	require.Zero(t, a.dueMS("o2"))
	a.post("/orders/o1/abandon", "", 200)
	a.order("o2")
}

func TestEveryFaultOfTheFlagsIsToldAtOnce(t *testing.T) {
	t.Parallel()
	_, err := parseFlags([]string{
		"-addr", "x", "-db", "", "-dsn", "", "-redis", "y", "-time-to-pay", "0", "-max-unpaid", "-1", "-trigger", "cron", "-engine-percent", "101", "-scan-every", "-1s", "-nightly", "25:00", "more",
	})
	require.EqualError(t, err, `found the argument "more": give flags only
-addr is "x": give host:port
-db is empty: give a file name
-dsn is empty: give one, or leave it out
-db and -dsn are both given: give one of them
-time-to-pay is 0s: give 1ms to 24h0m0s
-max-unpaid is -1: give 0 or more
-engine-percent is 101: give 0 to 100
-engine-percent is for -trigger both: the trigger is "cron"
-scan-every is -1s: give 1ms or more
-nightly is "25:00": give a time of day as 03:00
-trigger is "cron": give scan, both or engine
-redis is "y": give host:port or a redis:// URL`)
	_, err = parseFlags([]string{"-trigger", "scan", "-redis", "localhost:6379"})
	require.EqualError(t, err, `-redis is "localhost:6379", but -trigger scan needs no Redis: leave it out`)
	_, err = parseFlags([]string{"-scan-every", "1s"})
	require.EqualError(t, err, "-scan-every is for -trigger scan and both: with engine set -nightly")
	_, err = parseFlags([]string{"-redis", "redis://:secret@host:port"})
	require.ErrorContains(t, err, "-redis is no redis:// URL")
	require.NotContains(t, err.Error(), "secret")
}

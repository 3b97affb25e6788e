// Command outbox shows a close whose effects reach beyond the order database. Each order has
// reserved money at a payment service. An order that is not paid in time is closed, and its
// reservation must be released, once, though the service is away at times and answers get lost.
//
//	go run ./examples/outbox
//
// The close leaves a message in its own transaction; a second engine relays the messages:
//
//	engine "orders" -> close: order, stock, coupon, message -> commit
//	engine "outbox" -> the unsent messages -> payment service -> noted as sent
//
// All of it runs in this process: a Redis, a SQLite file, and the service.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/orderwheel/orderwheel/order"
)

const orders = 20

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "outbox:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "orderwheel-outbox-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	mini := miniredis.NewMiniRedis()
	if err := mini.Start(); err != nil {
		return err
	}
	defer mini.Close()
	rdb := redis.NewClient(&redis.Options{Addr: mini.Addr(), ContextTimeoutEnabled: true})
	defer rdb.Close()
	service, err := startPayments()
	if err != nil {
		return err
	}
	defer service.stop()
	s, err := openShop(ctx, filepath.Join(dir, "orders.db"), rdb, service.url())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return trade(ctx, s, service, out)
}

// trade places the orders: every other is paid at once, the rest expires while the service is away.
func trade(ctx context.Context, s *shop, service *payments, out io.Writer) error {
	service.goAway()
	for i := range orders {
		no := fmt.Sprintf("order-%02d", i)
		pays := i%2 == 0
		expireAt := time.Now().Add(200 * time.Millisecond)
		if pays {
			expireAt = expireAt.Add(time.Hour) // it has time to, however slow this machine is
		}
		service.reserve(no)
		if err := s.place(ctx, no, expireAt); err != nil {
			return err
		}
		if pays {
			if err := s.pay(ctx, no); err != nil {
				return err
			}
		}
	}
	if err := until(ctx, func() bool { return s.closed() == orders/2 }); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d orders: %d paid, %d closed; the payment service is away\n", orders, orders/2, s.closed())
	service.comeBack()
	if err := until(ctx, func() bool { return service.released() == orders/2 && s.unsent(ctx) == 0 }); err != nil {
		return err
	}
	fmt.Fprintf(out, "it is back: %d reservations released, each once\n", service.released())
	return service.fault(func(no string) bool {
		_, status, err := s.store.Find(ctx, no)
		return err == nil && status == order.Closed
	})
}

// until waits for what must happen.
func until(ctx context.Context, happened func() bool) error {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !happened() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
	return nil
}

// Command coupon shows another kind of timeout on the same engine: a coupon that is not used within
// half an hour expires, and its campaign may give it to somebody else. It needs no server:
//
//	go run ./examples/coupon
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/examples/internal/local"
	"github.com/orderwheel/orderwheel/executor"
)

const (
	granted  = 10
	used     = 4
	campaign = "autumn"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, 2*time.Second, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "coupon:", err)
		os.Exit(1)
	}
}

// run is the example; goodFor is half an hour in a shop.
func run(ctx context.Context, goodFor time.Duration, out io.Writer) (err error) {
	place, err := local.Open(ctx, schema)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, place.Close()) }()
	c := coupons{place.DB}
	// A kind of timeout has a namespace of its own: coupon c1 and order c1 are two tasks.
	engine, err := orderwheel.New(orderwheel.Config{Redis: place.Redis, Namespace: "coupon", Handler: c.expire})
	if err != nil {
		return err
	}
	if err := engine.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Stop(context.WithoutCancel(ctx))) }()

	return story(ctx, c, engine, goodFor, out)
}

// story grants coupons, uses some, and lets the others expire.
func story(ctx context.Context, c coupons, engine *orderwheel.Engine, goodFor time.Duration, out io.Writer) error {
	tell := func(what string) error {
		t, err := c.tally(ctx)
		fmt.Fprintf(out, "%-36s %v\n", what, t)
		return err
	}
	if _, err := c.db.ExecContext(ctx, `INSERT INTO campaigns VALUES (?, ?)`, campaign, granted); err != nil {
		return err
	}
	now, err := engine.Now(ctx)
	if err != nil {
		return err
	}
	expireAt := now.Add(goodFor)
	for i := range granted {
		if err := engine.Schedule(ctx, couponID(i), expireAt); err != nil { // before the commit
			return err
		}
		if err := c.grant(ctx, couponID(i), campaign, fmt.Sprintf("user-%d", i), expireAt); err != nil {
			return err
		}
	}
	if err := tell(fmt.Sprintf("%d coupons granted, good for %v:", granted, goodFor)); err != nil {
		return err
	}
	for i := range used {
		if _, err := c.use(ctx, couponID(i), now); err != nil {
			return err
		}
		if _, err := engine.Cancel(ctx, couponID(i)); err != nil { // after the commit
			return err
		}
	}
	if err := tell(fmt.Sprintf("%d used:", used)); err != nil {
		return err
	}
	if now, err := engine.Now(ctx); err != nil || !now.Before(expireAt) {
		return cmp.Or(err, local.ErrTooSlow)
	}
	allOver := func() (bool, error) {
		t, err := c.tally(ctx)
		return t.unused == 0, err
	}
	if err := local.Until(ctx, allOver); err != nil {
		return err
	}
	if err := tell("their time is over:"); err != nil {
		return err
	}
	for i := range granted {
		if err := c.expire(ctx, executor.Task{ID: couponID(i), Now: expireAt}); err != nil {
			return err
		}
	}
	return tell("the handler run once more for all:")
}

func couponID(i int) string { return fmt.Sprintf("coupon-%d", i) }

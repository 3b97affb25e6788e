// Command groupbuy shows another kind of timeout on the same engine: a group buy that has not found
// enough members in time refunds everyone who has paid. It needs no server:
//
//	go run ./examples/groupbuy
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
	needs = 3
	price = 1990
)

// kettles finds enough members, teapots does not, and spoons finds none.
var members = []struct {
	group string
	users []string
}{{"kettles", []string{"ann", "bob", "eve"}}, {"teapots", []string{"dan", "fay"}}, {"spoons", nil}}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, 2*time.Second, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "groupbuy:", err)
		os.Exit(1)
	}
}

// run is the example; openFor is a day in a shop.
func run(ctx context.Context, openFor time.Duration, out io.Writer) (err error) {
	place, err := local.Open(ctx, schema)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, place.Close()) }()
	g := groups{place.DB}
	// A kind of timeout has a namespace of its own, so its ids meet no others.
	engine, err := orderwheel.New(orderwheel.Config{Redis: place.Redis, Namespace: "groupbuy", Handler: g.expire})
	if err != nil {
		return err
	}
	if err := engine.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Stop(context.WithoutCancel(ctx))) }()
	return story(ctx, g, engine, openFor, out)
}

// story opens groups, lets members join, and waits until every group has come to its end.
func story(ctx context.Context, g groups, engine *orderwheel.Engine, openFor time.Duration, out io.Writer) error {
	now, err := engine.Now(ctx)
	if err != nil {
		return err
	}
	expireAt := now.Add(openFor)
	for _, m := range members {
		if err := engine.Schedule(ctx, m.group, expireAt); err != nil { // before the commit
			return err
		}
		if err := g.open(ctx, m.group, needs, expireAt); err != nil {
			return err
		}
		for _, user := range m.users {
			filled, err := g.join(ctx, m.group, user, "payment-of-"+user, price, now)
			if err != nil {
				return err
			}
			if filled {
				if _, err := engine.Cancel(ctx, m.group); err != nil { // after the commit
					return err
				}
			}
		}
	}
	if err := tell(ctx, g, out, fmt.Sprintf("open for %v:", openFor)); err != nil {
		return err
	}
	if now, err := engine.Now(ctx); err != nil || !now.Before(expireAt) {
		return cmp.Or(err, local.ErrTooSlow)
	}
	for _, m := range members {
		err := local.Until(ctx, func() (bool, error) {
			s, err := g.state(ctx, m.group)
			return s.status != "open", err
		})
		if err != nil {
			return err
		}
	}
	if err := tell(ctx, g, out, "the time is over:"); err != nil {
		return err
	}
	for _, m := range members {
		if err := g.expire(ctx, executor.Task{ID: m.group, Now: expireAt}); err != nil {
			return err
		}
	}
	return tell(ctx, g, out, "the handler run once more for all:")
}

func tell(ctx context.Context, g groups, out io.Writer, what string) error {
	fmt.Fprintln(out, what)
	for _, m := range members {
		s, err := g.state(ctx, m.group)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "  %-8s %v\n", m.group, s)
	}
	return nil
}

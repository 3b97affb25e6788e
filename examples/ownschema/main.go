// Command ownschema shows an app with tables of its own: those of a mall, with numbers for states and
// DATETIMEs of whole seconds. The engine needs one method of it, mall.Close; mall.Unpaid lets it bring
// back what Redis has lost. It needs no server:
//
//	go run ./examples/ownschema
package main

import (
	"cmp"
	"context"
	_ "embed" // schema.sql
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/examples/internal/local"
)

//go:embed schema.sql
var schema string

const (
	orders = 10
	paid   = 4
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, 2*time.Second, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "ownschema:", err)
		os.Exit(1)
	}
}

// run is the example; toPay is half an hour in a mall.
func run(ctx context.Context, toPay time.Duration, out io.Writer) (err error) {
	place, err := local.Open(ctx, schema)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, place.Close()) }()
	m := mall{place.DB}
	engine, err := orderwheel.New(orderwheel.Config{
		Redis:     place.Redis,
		Namespace: "mall",
		Handler:   orderwheel.Closing(m),
		Source:    m,
	})
	if err != nil {
		return err
	}
	if err := engine.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Stop(context.WithoutCancel(ctx))) }()
	return story(ctx, m, engine, toPay, out)
}

// story places orders, pays some, and waits until none is to be paid any more.
func story(ctx context.Context, m mall, engine *orderwheel.Engine, toPay time.Duration, out io.Writer) error {
	tell := func(what string) error {
		t, err := m.tally(ctx)
		fmt.Fprintf(out, "%-34s %v\n", what, t)
		return err
	}
	if _, err := m.db.ExecContext(ctx, `INSERT INTO pms_sku_stock VALUES ('tea', 100, 0), ('cup', 100, 0)`); err != nil {
		return err
	}
	now, err := engine.Now(ctx)
	if err != nil {
		return err
	}
	expireAt := ceilSecond(now.Add(toPay)) // the same instant for Redis and for the row
	for i := range orders {
		if err := engine.Schedule(ctx, orderSN(i), expireAt); err != nil { // before the commit
			return err
		}
		if err := m.place(ctx, orderSN(i), []item{{"tea", 2}, {"cup", 1}}, 9900, now, expireAt); err != nil {
			return err
		}
	}
	if err := tell(fmt.Sprintf("%d orders placed:", orders)); err != nil {
		return err
	}
	for i := range paid {
		if _, err := m.pay(ctx, orderSN(i), now); err != nil {
			return err
		}
		if _, err := engine.Cancel(ctx, orderSN(i)); err != nil { // after the commit
			return err
		}
	}
	if err := tell(fmt.Sprintf("%d paid:", paid)); err != nil {
		return err
	}
	if now, err := engine.Now(ctx); err != nil || !now.Before(expireAt) {
		return cmp.Or(err, local.ErrTooSlow)
	}
	allOver := func() (bool, error) {
		t, err := m.tally(ctx)
		return t.toBePaid == 0, err
	}
	if err := local.Until(ctx, allOver); err != nil {
		return err
	}
	if err := tell("their time is over:"); err != nil {
		return err
	}
	for i := range orders {
		if _, err := m.Close(ctx, orderSN(i), expireAt); err != nil {
			return err
		}
	}
	return tell("the close run once more for all:")
}

func orderSN(i int) string { return fmt.Sprintf("20260101%04d", i) }

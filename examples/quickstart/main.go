// Command quickstart runs the library's main job from end to end: see `go run
// ./examples/quickstart -h`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/orderwheel/orderwheel/examples/internal/show"
)

// The exit statuses.
const (
	exitOK          = 0
	exitFailed      = 1 // the audit found a fault, or the run failed
	exitUsage       = 2 // a flag or a file is wrong
	exitInterrupted = 130
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal kills, but not one that was sent along with the first, as
	// some senders do.
	context.AfterFunc(ctx, func() { time.AfterFunc(time.Second, stop) })
	redis.SetLogger(&logging.VoidLogger{}) // what matters comes as an error
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseFlags(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, usage)
		return exitOK
	}
	var carts []cart
	if err == nil {
		carts, err = load(o)
	}
	if err != nil {
		complain(stderr, err)
		return exitUsage
	}
	status, err := trade(ctx, o, carts, stdout, stderr)
	if err != nil {
		complain(stderr, err)
	}
	return status
}

// complain prints an error, each of its lines on its own. Those of a file begin
// with its name.
func complain(stderr io.Writer, err error) {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if !errors.As(err, new(fileFaults)) {
			line = "quickstart: " + line
		}
		fmt.Fprintln(stderr, line)
	}
}

// load reads or makes up what will be bought.
func load(o options) ([]cart, error) {
	rng := rand.New(rand.NewPCG(o.seed, 0))
	if o.orders == "" {
		return furnish(makeUp(madeUpOrders, o.timeout, rng), rng), nil
	}
	purchases, err := readOrders(o.orders)
	if err != nil {
		return nil, err
	}
	return furnish(purchases, rng), nil
}

// trade runs the simulation, prints the figures, and gives the exit status.
func trade(ctx context.Context, o options, carts []cart, stdout, stderr io.Writer) (status int, err error) {
	s, err := openShop(ctx, o, stderr)
	switch {
	case ctx.Err() != nil && err != nil:
		return exitInterrupted, nil
	case err != nil:
		return exitFailed, err
	}
	defer func() {
		if closeErr := s.close(); closeErr != nil {
			status, err = exitFailed, errors.Join(err, closeErr)
		}
	}()
	sim := &simulation{
		store: s.store, engine: s.engine, carts: carts,
		timeToPay: o.timeToPay(), speed: o.speed, spread: o.spread,
	}
	runErr := s.simulate(ctx, sim, o, stderr)
	interrupted := ctx.Err() != nil
	if interrupted && errors.Is(runErr, context.Canceled) {
		runErr = nil
	}
	report, settleErr := s.settle(ctx, runErr == nil && !interrupted)
	err = errors.Join(runErr, settleErr)
	sound := false
	if report != nil {
		if interrupted {
			fmt.Fprintln(stderr, "quickstart: interrupted; the figures so far:")
		}
		write := show.Table
		if o.json {
			write = show.JSON
		}
		err = errors.Join(err, write(stdout, *report))
		sound = len(report.Faults()) == 0
	}
	switch {
	case interrupted:
		return exitInterrupted, err
	case err != nil || !sound:
		return exitFailed, err
	}
	return exitOK, nil
}

// simulate starts the engine and lets the customers act, with the progress on
// stderr.
func (s *shop) simulate(ctx context.Context, sim *simulation, o options, stderr io.Writer) error {
	if err := sim.stockUp(ctx); err != nil {
		return err
	}
	if err := s.audit.NoteStock(ctx); err != nil {
		return err
	}
	if err := s.engine.Start(ctx); err != nil {
		return fmt.Errorf("start the engine: %w", err)
	}
	ahead, err := clockAhead(ctx, s.redis)
	if err != nil {
		return err
	}
	if ahead.Abs() >= time.Millisecond {
		fmt.Fprintf(stderr, "the clock of Redis is %v ahead of this machine's, which tells early and late_ms\n", ahead)
	}
	from := fmt.Sprintf("made-up orders (seed %d)", o.seed)
	if o.orders != "" {
		from = "orders of " + o.orders
	}
	fmt.Fprintf(stderr, "%s %s over %v; each has %v to pay (%v at speed %v)\n",
		show.Comma(int64(len(sim.carts))), from, o.spread, sim.timeToPay, o.timeout, o.speed)
	defer showProgress(stderr, sim.tally)()
	return sim.run(ctx)
}

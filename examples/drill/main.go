// Command drill kills the engine over and over, and then lets the audit look
// for the harm: see `go run ./examples/drill -h`.
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
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/orderwheel/orderwheel/examples/internal/show"
)

const usage = `Drill proves that a crash does no harm. It starts a worker: a process that creates
orders, pays some, and closes the rest with the engine. It kills the worker with
kill -9 at random moments and starts the next one, over and over; the last one may
finish. Then the audit compares the database, Redis and its own notes: no order
may be lost, closed early, or closed twice.

It starts a redis-server of its own, and needs one to be installed.

Flags:
  -orders N  orders of a round (default 10000)
  -kills N   kills of a round (default 10)
  -rounds N  rounds, each with an empty Redis and database (default 1)
  -seed N    the moments of the kills depend on it (default: by the clock)
  -h         show this help

Exit status: 0 all is well; 1 the audit found a fault, or the drill failed;
2 a flag is wrong; 130 interrupted.
`

// The exit statuses.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

type options struct {
	orders, kills, rounds int
	seed                  uint64
}

func main() {
	redis.SetLogger(&logging.VoidLogger{}) // what matters comes as an error
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if job, ok := jobOfThisProcess(); ok {
		os.Exit(work(ctx, job))
	}
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseFlags(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		return 0
	case err != nil:
		fmt.Fprintln(stderr, "drill:", err)
		return exitUsage
	}
	rng := rand.New(rand.NewPCG(o.seed, 0))
	fmt.Fprintf(stderr, "seed %d\n", o.seed)
	for n := range o.rounds {
		fmt.Fprintf(stderr, "round %d of %d: %s orders, %d kills\n", n+1, o.rounds, show.Comma(int64(o.orders)), o.kills)
		report, err := round(ctx, o, rng, stderr)
		switch {
		case ctx.Err() != nil:
			fmt.Fprintln(stderr, "drill: interrupted")
			return exitInterrupted
		case err != nil:
			fmt.Fprintln(stderr, "drill:", err)
			return exitFailed
		}
		if err := show.Table(stdout, report); err != nil {
			fmt.Fprintln(stderr, "drill:", err)
			return exitFailed
		}
		if len(report.Faults()) > 0 {
			return exitFailed
		}
	}
	return 0
}

// parseFlags reads the command line. flag.ErrHelp is returned for -h.
func parseFlags(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("drill", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.IntVar(&o.orders, "orders", 10000, "")
	flags.IntVar(&o.kills, "kills", 10, "")
	flags.IntVar(&o.rounds, "rounds", 1, "")
	flags.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("found the argument %q, expected flags only", flags.Arg(0))
	case o.orders < 1:
		return o, fmt.Errorf("-orders is %d, expected 1 or more", o.orders)
	case o.kills < 0:
		return o, fmt.Errorf("-kills is %d, expected 0 or more", o.kills)
	case o.rounds < 1:
		return o, fmt.Errorf("-rounds is %d, expected 1 or more", o.rounds)
	}
	return o, nil
}

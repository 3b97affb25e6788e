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

const usage = `Drill proves that a crash does no harm. It starts workers: processes that create
orders, pay and extend some, and close the rest with the engine, all on one Redis
and one SQLite database. It kills workers with kill -9, at random and at named
steps, and starts the next ones; it kills Redis (appendonly everysec) and restarts
it; it stops workers for longer than their leases last (SIGSTOP) and lets them go
on. Then the audit compares the database, Redis and its own notes: no order may
be lost, closed early, or closed twice, and no stock missing.

It starts a redis-server of its own. Where none is installed a Redis in the
process takes its place, and is not killed.

Flags:
  -orders N       orders of a round (default 10000)
  -processes N    workers at once (default 2)
  -kills N        kills of workers in a round (default 10); a tenth as many are
                  stopped and go on
  -redis-kills N  kills of Redis in a round (default 2)
  -rounds N       rounds, each with an empty Redis and database (default 1)
  -seed N         the same seed gives the same orders and the same plan of kills
                  (default: by the clock)
  -json           print the report of each round as one JSON object on one line
  -h              show this help

The report is printed on stdout, the progress on stderr. Of the kills it counts
each by where the worker was: at random, or at one of the steps
  schedule-commit  the task is scheduled, the order not committed
  schedule-wheel   Redis has the task, the wheel of the worker does not
  commit-schedule  the order, or its new expire_at, is committed and not scheduled
  pay-cancel       the payment is committed, the task not cancelled
  claim-handler    the task is claimed, its handler not begun
  in-close         within the close's transaction, before its commit
  close-ack        the close is committed, the task not acknowledged
  rebuild          while the engine's Start reads what is in Redis
  stop             within the engine's Stop
and redis are the kills of Redis. recovery_ms is from the start of a process to
its engine's Start having returned; late_ms is that of the closed orders.

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
	orders, processes, kills, redisKills, rounds int
	seed                                         uint64
	json                                         bool
}

func main() {
	redis.SetLogger(&logging.VoidLogger{}) // what matters comes as an error
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if job, ok := jobOfThisProcess(); ok {
		// An interrupt reaches all processes of a terminal; the drill ends its workers.
		os.Exit(work(context.Background(), job, os.Stdin, os.Stdout, os.Stderr))
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
	fmt.Fprintf(stderr, "seed %d\n", o.seed)
	for n := range o.rounds {
		fmt.Fprintf(stderr, "round %d of %d: %s orders, %d workers, %d kills, %d kills of Redis\n",
			n+1, o.rounds, show.Comma(int64(o.orders)), o.processes, o.kills, o.redisKills)
		// Each round's numbers are its own, whatever the rounds before have drawn.
		figures, err := runRound(ctx, o, rand.New(rand.NewPCG(o.seed, uint64(n))), stderr)
		if ctx.Err() != nil {
			fmt.Fprintln(stderr, "drill: interrupted")
			return exitInterrupted
		}
		if figures != nil {
			write := figures.writeTable
			if o.json {
				write = figures.writeJSON
			}
			err = errors.Join(err, write(stdout))
		}
		if err != nil {
			fmt.Fprintln(stderr, "drill:", err)
			return exitFailed
		}
		if !figures.sound() {
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
	flags.IntVar(&o.processes, "processes", 2, "")
	flags.IntVar(&o.kills, "kills", 10, "")
	flags.IntVar(&o.redisKills, "redis-kills", 2, "")
	flags.IntVar(&o.rounds, "rounds", 1, "")
	flags.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "")
	flags.BoolVar(&o.json, "json", false, "")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("found the argument %q, expected flags only", flags.Arg(0))
	}
	for _, f := range []struct {
		name           string
		value, atLeast int
	}{{"orders", o.orders, 1}, {"processes", o.processes, 1}, {"kills", o.kills, 0}, {"redis-kills", o.redisKills, 0}, {"rounds", o.rounds, 1}} {
		if f.value < f.atLeast {
			return o, fmt.Errorf("-%s is %d, expected %d or more", f.name, f.value, f.atLeast)
		}
	}
	return o, nil
}

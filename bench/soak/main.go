// Command soak runs the engine for a long time under a mixed load, on a redis-server
// of its own, and looks at what must not grow: the heap, goroutines, connections, and
// the memory of Redis. Tasks are scheduled, moved, cancelled, and run; some handlers
// fail, panic, or ask for a later time.
//
//	go run ./bench/soak            half an hour
//	go run ./bench/soak -d 2m      two minutes: a task must lose some 20 bytes to be seen
//
// After a warm-up the medians of the first and of the last third are compared. At the
// end the load stops, and every task must have come to its end.
//
// Exit status 0: nothing grew and nothing was lost. 1: something did, was, or failed.
// 2: the flags are wrong.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	d    time.Duration
	rate int
	seed uint64
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// run is the program; it returns the exit status.
func run(ctx context.Context, args []string, out, progress io.Writer) int {
	o, err := parse(args, progress)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(progress, "soak:", err)
		return 2
	}
	fmt.Fprintf(progress, "soak: %v, %d tasks a second, -seed %d\n", o.d, o.rate, o.seed)
	if err := withServer(ctx, o, out, progress); err != nil {
		fmt.Fprintln(out, "soak: FAILED:", err)
		return 1
	}
	fmt.Fprintln(out, "soak: nothing grew, nothing was lost")
	return 0
}

func parse(args []string, usage io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("soak", flag.ContinueOnError)
	f.SetOutput(usage)
	f.DurationVar(&o.d, "d", 30*time.Minute, "how `long`, 10s or more")
	f.IntVar(&o.rate, "rate", 500, "`tasks` scheduled a second")
	f.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "of what is random in the load")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("unknown argument %q", f.Arg(0))
	case o.d < 10*time.Second:
		return o, fmt.Errorf("-d is %v: use 10s or more", o.d)
	case o.rate < customers || o.rate > 20_000:
		return o, fmt.Errorf("-rate is %d: use %d to 20000", o.rate, customers)
	}
	return o, nil
}

// Command schemes runs the ways to close unpaid orders that the well-known articles on
// order timeouts teach, on the same orders, and orderwheel beside them.
//
//	go run ./bench/schemes                     all whose servers are installed
//	go run ./bench/schemes -only zset-poll,orderwheel
//	go run ./bench/schemes -json > FILE        for programs
//	go run ./bench/schemes -plot FILE.svg      and draws it
//	go run ./bench/schemes -from FILE          prints the report of an earlier run
//
// The orders live in a private MariaDB, which must be installed. What needs a Redis or a
// RabbitMQ runs where these are. bench/README.md says what is measured, and how.
//
// Exit status 0: it has run, whatever the figures. 1: it could not. 2: the flags are wrong.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/orderwheel/orderwheel/bench/internal/scheme"
)

func main() {
	if status, worker := scheme.Work(here); worker {
		os.Exit(status)
	}
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
		fmt.Fprintln(progress, "schemes:", err)
		return 2
	}
	if err := compare(ctx, o, out, progress); err != nil {
		fmt.Fprintln(progress, "schemes:", err)
		return 1
	}
	return 0
}

// compare runs what the options ask for and prints the report.
func compare(ctx context.Context, o options, out, progress io.Writer) error {
	r, err := report(ctx, o, progress)
	if err != nil {
		return err
	}
	if o.plot != "" {
		if err := plot(ctx, r, o.plot); err != nil {
			return err
		}
	}
	if o.json {
		return printJSON(out, r)
	}
	return printTable(out, r)
}

// report runs what the options ask for, or reads what an earlier run has found.
func report(ctx context.Context, o options, progress io.Writer) (r Report, err error) {
	if o.from != "" {
		text, err := os.ReadFile(o.from)
		if err != nil {
			return r, err
		}
		if err := json.Unmarshal(text, &r); err != nil {
			return r, fmt.Errorf("%s is no report of -json: %w", o.from, err)
		}
		return r, nil
	}
	s, err := startServers(ctx, o.rows)
	if err != nil {
		return r, err
	}
	defer s.stop()
	return measure(ctx, o, s, progress)
}

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const usage = `Quickstart runs orderwheel from end to end: orders are created, some are paid,
and the rest are closed at their instant, with their stock given back and their
coupons unfrozen. At the end an audit, which asks the database and Redis and not
the engine, says whether everything came out right.

It needs no server: Redis is an imitation in the process, and the orders are in
a SQLite file in a temporary folder.

  go run ./examples/quickstart                     1,000 made-up orders, 5 seconds
  go run ./examples/quickstart -orders orders.csv  your own orders
  go run ./examples/quickstart -redis :6379        on a real Redis

Flags:
  -orders FILE   replay the orders of a CSV file with the header
                 order_no,created_at,paid_at: times as in RFC 3339, and an
                 empty paid_at for an order that is never paid
  -redis ADDR    use the Redis at host:port, or at a redis:// URL. The run has
                 a namespace of its own and removes its keys at the end
  -timeout D     how long an order waits for its payment (default 30m)
  -speed N       how many times faster than life: divides the timeout and each
                 order's own time to pay (default 900)
  -spread D      create the orders evenly over this time, in file order
                 (default 3s); -speed does not change it
  -seed N        what is made up depends on it (default 1); who pays in time
                 depends on the machine too
  -db DIR        keep the database there: orders.db, with the tables of the
                 shop and of the audit
  -json          print the figures as one JSON object
  -h             show this help

The run ends when no order is open: payments that would come later are not made.

Exit status (of the built binary; go run makes every failure 1): 0 all is well; 1 the audit found a fault, or the run failed;
2 a flag or a file is wrong; 130 interrupted.
`

// options are the flags.
type options struct {
	orders  string
	redis   *redis.Options // nil: in the process
	timeout time.Duration
	speed   float64
	spread  time.Duration
	seed    uint64
	db      string
	json    bool
}

// timeToPay is the timeout as the orders have it.
func (o options) timeToPay() time.Duration { return scale(o.timeout, o.speed) }

// parseFlags reads the command line. flag.ErrHelp is returned for -h; any other
// error is one line.
func parseFlags(args []string) (options, error) {
	var o options
	var addr string
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.orders, "orders", "", "")
	flags.StringVar(&addr, "redis", "", "")
	flags.DurationVar(&o.timeout, "timeout", 30*time.Minute, "")
	flags.Float64Var(&o.speed, "speed", 900, "")
	flags.DurationVar(&o.spread, "spread", 3*time.Second, "")
	flags.Uint64Var(&o.seed, "seed", 1, "")
	flags.StringVar(&o.db, "db", "", "")
	flags.BoolVar(&o.json, "json", false, "")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("found the argument %q, expected flags only", flags.Arg(0))
	case o.timeout <= 0:
		return o, fmt.Errorf("-timeout is %v, expected more than 0", o.timeout)
	case !(o.speed > 0) || math.IsInf(o.speed, 0): // NaN is not greater than 0
		return o, fmt.Errorf("-speed is %v, expected a number greater than 0", o.speed)
	case o.spread < 0:
		return o, fmt.Errorf("-spread is %v, expected 0 or more", o.spread)
	case o.timeToPay() < time.Millisecond:
		return o, fmt.Errorf("-timeout %v at -speed %v is less than 1ms to pay", o.timeout, o.speed)
	case o.timeToPay() > longestTimeToPay:
		return o, fmt.Errorf("-timeout %v at -speed %v is more than 10 years to pay", o.timeout, o.speed)
	}
	if addr != "" {
		var err error
		if o.redis, err = redisOptions(addr); err != nil {
			return o, err
		}
	}
	return o, nil
}

const longestTimeToPay = 10 * 365 * 24 * time.Hour

func redisOptions(addr string) (*redis.Options, error) {
	if !strings.Contains(addr, "://") {
		if !strings.Contains(addr, ":") {
			return nil, fmt.Errorf("-redis is %q, expected host:port or a redis:// URL", addr)
		}
		return &redis.Options{Addr: addr}, nil
	}
	o, err := redis.ParseURL(addr)
	if err != nil {
		if parse := (*url.Error)(nil); errors.As(err, &parse) {
			err = parse.Err // without the URL: it may hold a password
		}
		return nil, fmt.Errorf("-redis is no redis:// URL: %w", err)
	}
	return o, nil
}

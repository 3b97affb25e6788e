package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/orderwheel/orderwheel"
)

const usage = `Shop is an order app: orders are created over HTTP, paid, extended or abandoned, and
the rest are closed at their instant, with their stock and coupons given back.

  go run ./examples/shop                         no server needed
  go run ./examples/shop -redis localhost:6379   tasks outlive the process

Its README has the requests as curl lines.

Flags:
  -addr HOST:PORT    where to listen (default 127.0.0.1:8080)
  -db FILE           the SQLite file of the orders (default shop.db)
  -dsn DSN           keep the orders in MySQL or MariaDB (user:password@tcp(host:3306)/name)
                     or PostgreSQL (postgres://user:password@host/name) instead
  -redis ADDR        the Redis of the engine: host:port or a redis:// URL. Without it
                     a Redis in this process serves, which forgets all at exit
  -time-to-pay D     how long an order waits for its payment (default 30m)
  -max-unpaid N      how many unpaid orders a user may have (default 0: no limit)
  -trigger HOW       what closes orders (default engine):
                       scan    a job that looks for overdue orders every minute
                       both    the engine, and the scan behind it
                       engine  the engine, and the scan once a night
  -engine-percent N  with -trigger both: the engine closes N percent of the orders, by
                     a hash of their numbers, and the scan the others (default 100)
  -scan-every D      how often the scan looks (default 1m; 5m where the engine closes
                     every order)
  -nightly HH:MM     when it looks with -trigger engine, local time (default 03:00)
  -h                 show this help

SIGTERM and Ctrl-C stop it: requests under way are answered, then closes under way
are finished. A second one kills.

Exit status: 0 it was stopped; 1 it failed; 2 a flag is wrong.
`

// trigger is what closes orders that are due.
type trigger string

// The steps of a move from a scan job to the engine: see docs/moving.md.
const (
	triggerScan   trigger = "scan"
	triggerBoth   trigger = "both"
	triggerEngine trigger = "engine"
)

// The periods of a scan: what it is by itself, and behind an engine that closes every order.
const (
	scanAlone  = time.Minute
	scanBehind = 5 * time.Minute
)

type options struct {
	addr      string
	db        string         // the SQLite file
	dsn       string         // of another database instead; empty: none
	redis     *redis.Options // nil: in this process
	timeToPay time.Duration
	maxUnpaid int
	trigger   trigger
	share     share // of the orders, the engine's
	scanEvery time.Duration
	nightly   timeOfDay

	tune func(*orderwheel.Config) // by tests that watch the engine; nil: as it is
}

// parseFlags reads the command line. flag.ErrHelp is returned for -h; any other error has a line
// for each fault.
func parseFlags(args []string) (options, error) {
	var o options
	var redisAddr, trig, nightly string
	var percent int
	flags := flag.NewFlagSet("shop", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.addr, "addr", "127.0.0.1:8080", "")
	flags.StringVar(&o.db, "db", "shop.db", "")
	flags.StringVar(&o.dsn, "dsn", "", "")
	flags.StringVar(&redisAddr, "redis", "", "")
	flags.DurationVar(&o.timeToPay, "time-to-pay", 30*time.Minute, "")
	flags.IntVar(&o.maxUnpaid, "max-unpaid", 0, "")
	flags.StringVar(&trig, "trigger", string(triggerEngine), "")
	flags.IntVar(&percent, "engine-percent", 100, "")
	flags.DurationVar(&o.scanEvery, "scan-every", 0, "")
	flags.StringVar(&nightly, "nightly", "03:00", "")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })

	var faults []error
	fault := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	fault(flags.NArg() == 0, "found the argument %q: give flags only", flags.Arg(0))
	_, _, err := net.SplitHostPort(o.addr)
	fault(err == nil, "-addr is %q: give host:port", o.addr)
	fault(o.db != "", "-db is empty: give a file name")
	fault(!given["dsn"] || o.dsn != "", "-dsn is empty: give one, or leave it out")
	fault(!given["dsn"] || !given["db"], "-db and -dsn are both given: give one of them")
	fault(o.timeToPay >= time.Millisecond && o.timeToPay <= longestToPay, "-time-to-pay is %v: give 1ms to %v", o.timeToPay, longestToPay)
	fault(o.maxUnpaid >= 0, "-max-unpaid is %d: give 0 or more", o.maxUnpaid)
	fault(percent >= 0 && percent <= 100, "-engine-percent is %d: give 0 to 100", percent)
	fault(!given["engine-percent"] || trig == string(triggerBoth), "-engine-percent is for -trigger both: the trigger is %q", trig)
	fault(!given["scan-every"] || trig != string(triggerEngine), "-scan-every is for -trigger scan and both: with engine set -nightly")
	fault(!given["scan-every"] || o.scanEvery >= time.Millisecond, "-scan-every is %v: give 1ms or more", o.scanEvery)
	o.nightly, err = parseTimeOfDay(nightly)
	fault(err == nil, "-nightly is %q: give a time of day as 03:00", nightly)
	switch o.trigger = trigger(trig); o.trigger {
	case triggerScan:
		o.share = 0
		fault(!given["redis"], "-redis is %q, but -trigger scan needs no Redis: leave it out", redisAddr)
	case triggerBoth, triggerEngine:
		o.share = share(percent)
	default:
		fault(false, "-trigger is %q: give scan, both or engine", trig)
	}
	if !given["scan-every"] {
		o.scanEvery = scanAlone
		if o.share == everyOrder {
			o.scanEvery = scanBehind
		}
	}
	if given["redis"] {
		o.redis, err = redisOptions(redisAddr)
		fault(err == nil, "%w", err)
	}
	return o, errors.Join(faults...)
}

func redisOptions(addr string) (*redis.Options, error) {
	if !strings.Contains(addr, "://") {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return nil, fmt.Errorf("-redis is %q: give host:port or a redis:// URL", addr)
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

package orderwheel

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/orderwheel/orderwheel/executor"
	"github.com/orderwheel/orderwheel/wheel"
)

// Config says what an Engine works on and how. Redis and Handler are required;
// every other field has a default, which the zero value means.
type Config struct {
	// Redis is the app's client: single node, Sentinel or Cluster; a redis.Ring
	// is refused. The engine never closes it. Set ContextTimeoutEnabled on it,
	// so that a ctx cuts a call that waits for a reply.
	Redis redis.UniversalClient

	// Handler does the work of one task; Closing makes it from an order close.
	Handler executor.Handler

	// Namespace is the prefix of every key: 1 to 64 of A-Z a-z 0-9 _ . : -
	// (default "orderwheel"). Engines with the same namespace share the work;
	// use one for each kind of timeout.
	Namespace string

	// Workers is how many handlers run at once (default 64).
	Workers int

	// Lease is how long a claim holds (default 30s). When the process dies, its
	// running tasks run elsewhere after that. A handler's ctx ends with its
	// lease.
	Lease time.Duration

	// HandlerTimeout is how long a handler's ctx lasts (default 30s).
	HandlerTimeout time.Duration

	// RequireClaim keeps a task from running without a claim (default false). While
	// Redis gives no answer, what comes due runs anyway: its handler's conditional
	// update makes it safe, not the claim. When Redis is back it is claimed, and runs
	// again in the ordinary way. So during an outage an instance may call the handler
	// for a task that another instance has cancelled, moved, or run; of its own
	// Schedule and Cancel it knows. Set RequireClaim for a handler that must not be
	// called then: nothing runs until Redis is back.
	RequireClaim bool

	// Retry says when a failed task comes back: defaults Base 1s, Cap 5m, Jitter
	// 0.2; a negative Jitter means none. A task that fails is retried until it
	// succeeds or is cancelled.
	Retry Retry

	// SweepEvery is how often overdue tasks and leases that have run out are
	// looked for (default 1s).
	SweepEvery time.Duration

	// Grace is how long a task is overdue before the sweep takes it (default
	// 250ms).
	Grace time.Duration

	// WaitReplicas is how many replicas must have what Schedule and Cancel wrote
	// before they return (default 0: none). Else they return
	// persist.ErrNotReplicated after WaitTimeout (default 1s): it is written, but a
	// failover may lose it.
	WaitReplicas int
	WaitTimeout  time.Duration

	// Wheel makes the engine of the wheel (default wheel.New).
	Wheel wheel.Factory

	// Logger is told the events started, recovered, redis_away, redis_back,
	// claims_unanswered, claims_answered, failed, lease_lost and sweep_found; at Start redis_setup, what may be
	// wrong with Redis; and claim_failed, settle_failed, sweep_failed and
	// clock_failed, which mean that Redis gives an answer that waiting does not
	// mend (default: discards).
	Logger *slog.Logger
}

// Retry is the backoff of failed tasks.
type Retry = executor.Backoff

func (c Config) withDefaults() Config {
	set(&c.Namespace, "orderwheel")
	set(&c.Workers, 64)
	set(&c.Lease, 30*time.Second)
	set(&c.HandlerTimeout, 30*time.Second)
	set(&c.Retry.Base, time.Second)
	set(&c.Retry.Cap, 5*time.Minute)
	set(&c.Retry.Jitter, 0.2)
	set(&c.SweepEvery, time.Second)
	set(&c.Grace, 250*time.Millisecond)
	if c.Wheel == nil {
		c.Wheel = wheel.New
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Logger = slog.New(guardedLog{c.Logger.Handler()})
	if c.Retry.Jitter < 0 {
		c.Retry.Jitter = 0
	}
	return c
}

func set[T comparable](field *T, to T) {
	var zero T
	if *field == zero {
		*field = to
	}
}

// validate reports every fault of a Config with defaults at once. Redis, Namespace
// and what replicas have are persist's to judge.
func (c Config) validate() error {
	var faults []error
	fault := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf("orderwheel: Config."+format, args...))
		}
	}
	fault(c.Handler != nil, "Handler is nil: set it, for example to orderwheel.Closing(closer)")
	fault(c.Workers >= 1 && c.Workers <= maxWorkers, "Workers is %d: use 1 to %d", c.Workers, maxWorkers)
	fault(c.Lease >= time.Millisecond, "Lease is %v: use 1ms or more, and more than a close takes", c.Lease)
	fault(c.HandlerTimeout > 0, "HandlerTimeout is %v: use a positive duration", c.HandlerTimeout)
	fault(c.Retry.Base >= time.Millisecond, "Retry.Base is %v: use 1ms or more", c.Retry.Base)
	fault(c.Retry.Cap >= c.Retry.Base, "Retry.Cap is %v: use Retry.Base (%v) or more", c.Retry.Cap, c.Retry.Base)
	fault(c.Retry.Jitter <= 1, "Retry.Jitter is %v: use 0 to 1", c.Retry.Jitter)
	fault(c.SweepEvery >= time.Millisecond, "SweepEvery is %v: use 1ms or more", c.SweepEvery)
	fault(c.Grace > 0, "Grace is %v: use a positive duration", c.Grace)
	return errors.Join(faults...)
}

const maxWorkers = 1 << 16

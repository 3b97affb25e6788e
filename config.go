package orderwheel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/orderwheel/orderwheel/executor"
	"github.com/orderwheel/orderwheel/persist"
	"github.com/orderwheel/orderwheel/recovery"
	"github.com/orderwheel/orderwheel/wheel"
)

// Config says what an Engine works on and how. Redis is required, and one of Handler
// and BatchHandler; every other field has a default, which the zero value means.
type Config struct {
	// Redis is the app's client: single node, Sentinel or Cluster; a redis.Ring
	// is refused. The engine never closes it. Set ContextTimeoutEnabled on it,
	// so that a ctx cuts a call that waits for a reply.
	Redis redis.UniversalClient

	// Handler does the work of one task; Closing makes it from an order close.
	Handler executor.Handler

	// BatchHandler does the work of many tasks in one call, and returns an error for
	// each; ClosingMany makes it from a close of many orders. A call has what was due when a worker was free, at most BatchSize tasks
	// (default 100, at most 1000), all of one shard of the store unless they had to wait for
	// a worker, and is never put off to get more. Without a claim (see RequireClaim) it
	// has one task.
	BatchHandler executor.BatchHandler
	BatchSize    int

	// Namespace is the prefix of every key: 1 to 64 of A-Z a-z 0-9 _ . : -
	// (default "orderwheel"). Engines with the same namespace share the work;
	// use one for each kind of timeout.
	Namespace string

	// Workers is how many handlers run at once (default 64). A handler that has not
	// returned when its ctx and its lease are over gets a replacement; there are at
	// most Workers of these.
	Workers int

	// Lease is how long a claim holds (default 30s). When the process dies, its
	// running tasks run elsewhere after that. While a handler runs and its ctx lives,
	// its lease is renewed; if it is lost all the same, because Redis does not answer
	// for so long, the ctx ends with executor.ErrLeaseLost as its cause.
	Lease time.Duration

	// HandlerTimeout is how long a handler's ctx lasts (default 30s), also where that
	// is longer than Lease.
	HandlerTimeout time.Duration

	// RequireClaim keeps a task from running without a claim (default false). While
	// Redis gives no answer, what comes due runs anyway: its handler's conditional
	// update makes it safe, not the claim. When Redis is back it is claimed, and runs
	// again in the ordinary way. So during an outage an instance may call the handler
	// for a task that another instance has cancelled, moved, or run; of its own
	// Schedule and Cancel it knows. Set RequireClaim for a handler that must not be
	// called then: nothing runs until Redis is back.
	RequireClaim bool

	// Retry says when a failed task comes back, and how often: defaults Base 1s,
	// Cap 5m, Attempts 16, Jitter 0.2. After the last attempt, or an error made by
	// executor.Permanent, it is dead: it stays in Redis with the reason, and does not
	// run again until it is requeued or scheduled. Negative Attempts: no limit.
	// Negative Jitter: none. Four attempts half a minute apart, then the alarm:
	// Retry{Base: 30 * time.Second, Cap: 30 * time.Second, Attempts: 4}.
	Retry Retry

	// OnDead is called for each task that this engine has buried: the alarm
	// (default: none). It is called by one goroutine, one task after the other, and
	// never holds up a task; its ctx lasts HandlerTimeout. Up to 1024 calls wait; what
	// comes on top, and what waits when the process dies, is not told: the list of the
	// dead in Redis is the truth. It may be told of a task that was cancelled during its
	// last attempt, which is gone then.
	OnDead func(ctx context.Context, d executor.Dead)

	// SweepEvery is how often overdue tasks and leases that have run out are
	// looked for (default 1s).
	SweepEvery time.Duration

	// Grace is how long a task is overdue before the sweep takes it (default
	// 250ms).
	Grace time.Duration

	// Horizon is how far ahead tasks are held in memory (default 1h); what is due
	// later stands in Redis alone and is read when it comes near. So memory grows with
	// what is due within the Horizon. At least SweepEvery, and at least 1s.
	Horizon time.Duration

	// Source is the order database, to reconcile with: at Start, every
	// ReconcileEvery (default 5m), and at once when Redis has lost writes, one of all
	// instances reads the unpaid orders, and those that stand nowhere in Redis are
	// scheduled. What is pending, running or dead stays as it is. That is the last line
	// of defence, and what it finds is an alarm: see Stats.Recovery.ReconcileFound. An
	// app that schedules only after its order has committed will see it find some by
	// right. nil: there is none, and what Redis loses is lost. Package order/sqlstore
	// has one.
	Source         Source
	ReconcileEvery time.Duration

	// WaitReplicas is how many replicas must have what Schedule and Cancel wrote
	// before they return (default 0: none). Else they return persist.ErrNotReplicated
	// after WaitTimeout (default 1s, with WaitFsync 3s): it is written, but a
	// failover may lose it.
	WaitReplicas int
	WaitTimeout  time.Duration

	// WaitFsync has Schedule and Cancel wait until what they wrote is on the disk of the
	// server, and on that of WaitReplicas replicas (default false): a crash of Redis then
	// loses none of it. It needs Redis 7.2 or later and appendonly yes. With appendfsync
	// everysec each call takes up to a second: see persist.Options.
	WaitFsync bool

	// MaxPending is how many tasks may be pending in the namespace, of all instances,
	// now or later (default 0: no limit). With so many, Schedule of a new id returns
	// ErrOverloaded and writes nothing; what is pending or running can be moved, and
	// retries, Requeue and the Source are not bound. Give all instances the same. A Redis
	// needs some 120 bytes a task. On a Cluster each shard takes its part, and is full a
	// little before or after the others: leave some room.
	MaxPending int

	// Wheel makes the engine of the wheel (default wheel.New).
	Wheel wheel.Factory

	// Logger is told the events started, recovered, redis_away, redis_back,
	// claims_unanswered, claims_answered, retried, dead, lease_lost, sweep_found,
	// reconcile_found, reconcile_refused, wheel_replaced and epoch_lost; at Start redis_setup, what may be wrong with
	// Redis; claim_failed, settle_failed, renew_failed, sweep_failed, paging_failed,
	// clock_failed and reconcile_failed, which mean that Redis, or the Source, gives
	// an answer that waiting does not mend; and alarm_dropped and alarm_panicked, of
	// OnDead (default: discards).
	Logger *slog.Logger
}

// Retry is the backoff of failed tasks.
type Retry = executor.Backoff

// Source is the order database, as the reconciliation reads it.
type Source = recovery.Source

func (c Config) withDefaults() Config {
	set(&c.Namespace, "orderwheel")
	set(&c.BatchSize, 100)
	set(&c.Workers, 64)
	set(&c.Lease, 30*time.Second)
	set(&c.HandlerTimeout, 30*time.Second)
	set(&c.Retry.Base, time.Second)
	set(&c.Retry.Cap, 5*time.Minute)
	set(&c.Retry.Attempts, 16)
	set(&c.Retry.Jitter, 0.2)
	set(&c.SweepEvery, time.Second)
	set(&c.Grace, 250*time.Millisecond)
	set(&c.Horizon, time.Hour)
	set(&c.ReconcileEvery, 5*time.Minute)
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
	fault(c.Handler != nil || c.BatchHandler != nil, "Handler is nil: set it, for example to orderwheel.Closing(closer), or set BatchHandler")
	fault(c.Handler == nil || c.BatchHandler == nil, "Handler and BatchHandler are both set: set one of them")
	fault(c.BatchSize >= 1 && c.BatchSize <= persist.MaxBatch, "BatchSize is %d: use 1 to %d", c.BatchSize, persist.MaxBatch)
	fault(c.Workers >= 1 && c.Workers <= maxWorkers, "Workers is %d: use 1 to %d", c.Workers, maxWorkers)
	fault(c.Lease >= time.Millisecond, "Lease is %v: use 1ms or more; some seconds, for else each hitch of Redis ends handlers", c.Lease)
	fault(c.HandlerTimeout > 0, "HandlerTimeout is %v: use a positive duration", c.HandlerTimeout)
	fault(c.Retry.Base >= time.Millisecond, "Retry.Base is %v: use 1ms or more", c.Retry.Base)
	fault(c.Retry.Cap >= c.Retry.Base, "Retry.Cap is %v: use Retry.Base (%v) or more", c.Retry.Cap, c.Retry.Base)
	fault(c.Retry.Jitter <= 1, "Retry.Jitter is %v: use 0 to 1", c.Retry.Jitter)
	fault(c.SweepEvery >= time.Millisecond, "SweepEvery is %v: use 1ms or more", c.SweepEvery)
	fault(c.Grace > 0, "Grace is %v: use a positive duration", c.Grace)
	fault(c.Horizon >= leastHorizon && c.Horizon >= c.SweepEvery,
		"Horizon is %v: use %v or more, and at least SweepEvery (%v)", c.Horizon, leastHorizon, c.SweepEvery)
	fault(c.ReconcileEvery >= time.Second, "ReconcileEvery is %v: use 1s or more", c.ReconcileEvery)
	return errors.Join(faults...)
}

const (
	maxWorkers   = 1 << 16
	leastHorizon = time.Second
)

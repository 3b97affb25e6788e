package main

import (
	"slices"
	"time"

	"github.com/orderwheel/orderwheel/bench/internal/scheme"
)

// row is a scheme, or a variant of one, and a row of the table.
type row struct {
	name   string // the scheme's, or the scheme's/variant
	scheme string // as the worker knows it

	// every is the period, as in the articles. It is divided by -scale where it is that of a
	// scan; the interval of a poll, a second at most, is not.
	every time.Duration
	scan  bool

	needs []string // servers beside the order database
	peer  bool     // it is in bench/peers

	// recovers is how long it may take to close what a dead process had, with all its
	// periods as in the articles; scaled as scans are, unless fixed.
	recovers time.Duration
	fixed    bool

	twoOnly bool // it differs from its neighbour only with two instances
}

const (
	needsRedis  = "redis-server"
	needsRabbit = "rabbitmq-server"
)

// here are the schemes of this program.
var here = map[string]scheme.Factory{
	"db-scan":         newDBScan,
	"db-scan-sharded": newDBScanSharded,
	"delay-queue":     newDelayQueue,
	"key-expiry":      newKeyExpiry,
	"zset-poll":       newZSetPoll,
	"zset-batch":      newZSetBatch,
	"zset-lock":       newZSetLock,
	"zset-levels":     newZSetLevels,
	"zset-ack":        newZSetAck,
	"wheel-only":      newWheelOnly,
	"wheel-inline":    newWheelInline,
	"combined":        newCombined,
	"orderwheel":      newOrderWheel,
}

// rows are all, in the order of the table.
var rows = []row{
	scanRow("db-scan/5s", "db-scan", 5*time.Second),
	scanRow("db-scan/30s", "db-scan", 30*time.Second),
	scanRow("db-scan/60s", "db-scan", time.Minute),
	{name: "db-scan/5s-sharded", scheme: "db-scan-sharded", every: 5 * time.Second, scan: true, recovers: 5 * time.Second, twoOnly: true},
	{name: "delay-queue", scheme: "delay-queue"},
	{name: "wheel-only", scheme: "wheel-only"},
	{name: "wheel-inline", scheme: "wheel-inline"},
	onRedis(row{name: "key-expiry", scheme: "key-expiry"}),
	onRedis(row{name: "zset-poll/1s", scheme: "zset-poll", every: time.Second, recovers: retryAfter}),
	onRedis(row{name: "zset-poll/500ms", scheme: "zset-poll", every: 500 * time.Millisecond, recovers: retryAfter}),
	onRedis(row{name: "zset-poll/100ms", scheme: "zset-poll", every: 100 * time.Millisecond, recovers: retryAfter}),
	onRedis(row{name: "zset-batch", scheme: "zset-batch", every: time.Second, recovers: retryAfter}),
	onRedis(row{name: "zset-lock", scheme: "zset-lock", every: time.Second, recovers: lockFor}),
	onRedis(row{name: "zset-levels", scheme: "zset-levels", every: time.Second, recovers: retryAfter}),
	onRedis(row{name: "zset-ack", scheme: "zset-ack", every: time.Second, recovers: stuckAfter + stuckEvery}),
	{name: "rabbitmq-dlx", scheme: "rabbitmq-dlx", needs: []string{needsRabbit}, peer: true},
	{name: "rabbitmq-table", scheme: "rabbitmq-table", needs: []string{needsRabbit}, peer: true, every: time.Minute, scan: true, recovers: time.Minute},
	onRedis(row{name: "combined", scheme: "combined", every: time.Second, recovers: safetyEvery}),
	onRedis(row{name: "asynq", scheme: "asynq", peer: true, recovers: 2 * time.Minute, fixed: true}),
	onRedis(row{name: "orderwheel", scheme: "orderwheel", recovers: lease}),
}

func scanRow(name, scheme string, every time.Duration) row {
	return row{name: name, scheme: scheme, every: every, scan: true, recovers: every}
}

func onRedis(r row) row {
	r.needs = append(r.needs, needsRedis)
	return r
}

// period is the row's own in a run.
func (r row) period(scale int) time.Duration {
	if r.scan {
		return r.every / time.Duration(scale)
	}
	return r.every
}

// patience is how long nothing may be closed before what is open counts as never closed.
func (r row) patience(scale int) time.Duration {
	recovers := r.recovers
	if !r.fixed {
		recovers /= time.Duration(scale)
	}
	return recovers + 2*r.period(scale) + leastPatience
}

const leastPatience = 5 * time.Second

func rowNamed(name string) (row, bool) {
	i := slices.IndexFunc(rows, func(r row) bool { return r.name == name })
	if i < 0 {
		return row{}, false
	}
	return rows[i], true
}

// described are ways that are not measured, and what they can express.
var described = []struct{ name, text string }{
	{"RocketMQ", "delayed messages, 18 fixed levels from 1 s to 2 h in version 4, any time in 5. No Debian package. A delay of 30 minutes is a level; one of 25 is not. " +
		"At least once, so the close must be idempotent; in version 4 a message that was sent cannot be taken back"},
	{"RabbitMQ delayed-message plugin", "x-delay per message, no head-of-line blocking. Not in Debian. What waits is in one node's Mnesia table, not replicated, and its authors " +
		"advise against millions; it cannot be taken back"},
	{"Redis Streams", "no delays of their own: a stream carries what is due from a poller's ZSet to a consumer group, whose XPENDING and XCLAIM are the ack that zset-ack builds by hand; " +
		"so as late as the poller, and nothing lost by a dead consumer"},
}

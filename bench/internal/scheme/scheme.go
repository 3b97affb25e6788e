package scheme

import (
	"context"
	"database/sql"
	"time"

	"github.com/redis/go-redis/v9"
)

// Scheme is one way to close orders when they expire. Its methods may be called by many
// goroutines at once, Add and Remove only between Start and Stop.
type Scheme interface {
	// Start begins to look for orders that have expired. What an earlier process of the
	// same scheme has left in the servers is taken up as the scheme does it.
	Start(ctx context.Context) error
	// Add is called for an order that was created and is in the database.
	Add(ctx context.Context, o Order) error
	// Remove is called for an order that was paid.
	Remove(ctx context.Context, id string) error
	// Stop ends it. Handlers that run are waited for.
	Stop()
}

// Factory makes a scheme that works in env.
type Factory func(env *Env) Scheme

// Order is what a scheme is told of an order.
type Order struct {
	ID       string
	UserID   int64
	ExpireAt time.Time // a whole millisecond
}

// Env is what a scheme works with.
type Env struct {
	DB    *sql.DB       // the order database, with the tables of this package
	Redis *redis.Client // a database of its own, numbered 0
	AMQP  string        // URL of RabbitMQ; empty: there is none
	Run   string        // names this run: for what a server keeps beyond it

	// Every is the period of the variant: of its scan or its poll. 0: it has none.
	Every time.Duration
	// Scale is by how much scan periods, retry delays, leases and locks are shorter
	// than in the articles.
	Scale int
	// Instance is which of so many Instances this process is, from 0.
	Instance, Instances int
	// Workers is how many handlers run at once, where a scheme runs more than one.
	Workers int

	// Handle is the handler. It closes the order if it is unpaid. Each call is noted.
	Handle func(ctx context.Context, id string) error
	// Alarm is told of what a scheme has given up, and of errors that it can only
	// report. It ends nothing.
	Alarm func(what string, err error)
}

// Scaled is a scan period, a retry delay, a lease or a lock of the articles, as long as
// it is in this run.
func (e *Env) Scaled(d time.Duration) time.Duration { return d / time.Duration(e.Scale) }

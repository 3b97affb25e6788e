package audit

import (
	"context"
	"database/sql"
	_ "embed" // schema.sql
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/orderwheel/orderwheel/executor"
)

//go:embed schema.sql
var schema string

// Config says what to judge. All fields are required.
type Config struct {
	DB        *sql.DB // SQLite, with the tables of order/sqlstore
	Redis     redis.UniversalClient
	Namespace string // the engine's
	Dir       string // where the files of the calls are
}

// Audit notes what happens and reports on it. Its methods may be called by many
// goroutines at once.
type Audit struct {
	db    *sql.DB
	tasks taskKeys
	dir   string
	log   *callLog
}

// Open prepares the audit's tables and a file for the calls of this process.
// Close the audit when no handler runs any more.
func Open(ctx context.Context, c Config) (*Audit, error) {
	if _, err := c.DB.ExecContext(ctx, schema); err != nil {
		return nil, fmt.Errorf("audit: create its tables: %w", err)
	}
	log, err := newCallLog(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return &Audit{db: c.DB, tasks: taskKeys{c.Redis, c.Namespace}, dir: c.Dir, log: log}, nil
}

// Close closes the file of the calls.
func (a *Audit) Close() error { return a.log.close() }

// NoteStock notes the units of every sku. Call it when all are delivered and no
// order has been placed; a sku noted already keeps its figure.
func (a *Audit) NoteStock(ctx context.Context) error {
	_, err := a.db.ExecContext(ctx, `INSERT OR IGNORE INTO audit_stock SELECT sku_id, stock FROM sku_stock`)
	if err != nil {
		return fmt.Errorf("audit: note the stock: %w", err)
	}
	return nil
}

// Wrap returns a handler that notes each call of h. A note that cannot be
// written does not stop h: Report will return the error.
func (a *Audit) Wrap(h executor.Handler) executor.Handler {
	return func(ctx context.Context, t executor.Task) error {
		number := a.log.enter(time.Now(), t)
		err := h(ctx, t)
		a.log.leave(time.Now(), number, err)
		return err
	}
}

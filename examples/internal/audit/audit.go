package audit

import (
	"context"
	"database/sql"
	_ "embed" // schema.sql
	"fmt"

	"github.com/redis/go-redis/v9"
)

//go:embed schema.sql
var schema string

// Config says what to judge. All fields are required.
type Config struct {
	DB        *sql.DB // SQLite, with the tables of order/sqlstore
	Redis     redis.UniversalClient
	Namespace string // the engine's
	Dir       string // where the files of the notes are
}

// Audit notes what happens in this process and reports on all of them. Its
// methods may be called by many goroutines at once.
type Audit struct {
	*Notes
	db    *sql.DB
	tasks taskKeys
	dir   string
}

// Open prepares the audit's tables and a file for the notes of this process.
// Close the audit when no handler runs any more.
func Open(ctx context.Context, c Config) (*Audit, error) {
	if _, err := c.DB.ExecContext(ctx, schema); err != nil {
		return nil, fmt.Errorf("audit: create its tables: %w", err)
	}
	notes, err := OpenNotes(c.Dir)
	if err != nil {
		return nil, err
	}
	return &Audit{Notes: notes, db: c.DB, tasks: taskKeys{c.Redis, c.Namespace}, dir: c.Dir}, nil
}

// NoteStock notes the units of every sku. Call it when all are delivered and no
// order has been placed; a sku noted already keeps its figure.
func (a *Audit) NoteStock(ctx context.Context) error {
	_, err := a.db.ExecContext(ctx, `INSERT OR IGNORE INTO audit_stock SELECT sku_id, stock FROM sku_stock`)
	if err != nil {
		return fmt.Errorf("audit: note the stock: %w", err)
	}
	return nil
}

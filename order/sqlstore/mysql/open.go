package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/internal/check"
)

const (
	maxConns    = 32
	maxIdleTime = time.Minute // less than what servers and balancers allow

	connectTimeout = 10 * time.Second
	answerTimeout  = 30 * time.Second
	lockWait       = "5" // seconds

	sqlMode = "'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'"
)

// ErrReadOnly is returned for a server that takes no writes: a replica, or a primary that is no
// more.
var ErrReadOnly = errors.New("the server is read-only")

// Open opens the database that dsn names, in the form of github.com/go-sql-driver/mysql, for a
// sqlstore.Store; the tables are created by Store.Migrate. The package comment says what it sets.
// The caller closes it, and may change the limits of its pool (32 connections).
//
// order.ErrInvalid is returned for a DSN that names no database or sets what the store relies on,
// ErrReadOnly for a server that takes no writes.
func Open(ctx context.Context, dsn string) (*sql.DB, error) {
	c, err := Connector(dsn)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(maxConns)
	db.SetMaxIdleConns(maxConns)
	db.SetConnMaxIdleTime(maxIdleTime)
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open MySQL: %w", err), db.Close())
	}
	return db, nil
}

// Connector makes the connections of Open, for programs that wrap them (tracing, fault injection)
// before sql.OpenDB.
func Connector(dsn string) (driver.Connector, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, fmt.Errorf("open MySQL: %w: %w", order.ErrInvalid, err) // it does not quote the DSN
	}
	if err := refuse(cfg); err != nil {
		return nil, fmt.Errorf("open MySQL: %w", err)
	}
	if cfg.Params == nil {
		cfg.Params = map[string]string{}
	}
	cfg.Params["sql_mode"] = sqlMode
	given := names(cfg)
	for _, name := range []string{"innodb_lock_wait_timeout", "lock_wait_timeout"} { // of rows, and of tables
		if !slices.Contains(given, name) {
			cfg.Params[name] = lockWait
		}
	}
	cfg.ClientFoundRows = true
	cfg.InterpolateParams = true
	cfg.RejectReadOnly = true
	cfg.Timeout = orDefault(cfg.Timeout, connectTimeout)
	cfg.ReadTimeout = orDefault(cfg.ReadTimeout, answerTimeout)
	cfg.WriteTimeout = orDefault(cfg.WriteTimeout, answerTimeout)
	cfg.Collation = "" // the server's own of utf8mb4: ids have none, see the schema
	if err := cfg.Apply(mysql.Charset("utf8mb4", "")); err != nil {
		return nil, fmt.Errorf("open MySQL: %w", err)
	}
	inner, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("open MySQL: %w", err)
	}
	return connector{inner}, nil
}

func orDefault(d, other time.Duration) time.Duration {
	if d == 0 {
		return other
	}
	return d
}

// refuse names the faults of a DSN: what it sets as variables of the session, and the store relies
// on.
func refuse(cfg *mysql.Config) error {
	var f check.Faults
	if cfg.DBName == "" {
		f.Add("the database of the DSN", "empty", "name one: user@tcp(host:3306)/name")
	}
	for name, value := range cfg.Params {
		switch strings.ToLower(name) {
		case "sql_mode", "tx_isolation", "transaction_isolation", "tx_read_only", "transaction_read_only",
			"autocommit", "foreign_key_checks", "unique_checks":
			f.Add(name, value, "leave it out of the DSN: the store relies on its own, or on the server's default")
		}
	}
	return f.Err(order.ErrInvalid)
}

// names are those of the session variables, as MySQL reads them.
func names(cfg *mysql.Config) (names []string) {
	for name := range cfg.Params {
		names = append(names, strings.ToLower(name))
	}
	return names
}

// connector makes connections that are set up. What has no name that both MySQL and MariaDB know is
// set by statements here and not by a variable in the DSN.
type connector struct{ driver.Connector }

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := setUp(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

func setUp(ctx context.Context, conn driver.Conn) error {
	_, err := conn.(driver.ExecerContext).ExecContext(ctx, `SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED`, nil)
	if err != nil {
		return err
	}
	rows, err := conn.(driver.QueryerContext).QueryContext(ctx, `SELECT @@GLOBAL.read_only`, nil)
	if err != nil {
		return err
	}
	defer rows.Close()
	var v [1]driver.Value
	if err := rows.Next(v[:]); err != nil {
		return err
	}
	if n, ok := v[0].(int64); !ok || n != 0 {
		return fmt.Errorf("%w (read_only is %v): name the primary", ErrReadOnly, v[0])
	}
	return nil
}

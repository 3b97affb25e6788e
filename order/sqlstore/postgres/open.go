package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/internal/check"
)

const (
	maxConns    = 32
	maxIdleTime = time.Minute // less than what servers and balancers allow

	connectTimeout = 10 * time.Second
)

// settings are those of a session that the store relies on: what the DSN may say, the first where it
// says nothing. Empty: anything.
var settings = map[string][]string{
	"default_transaction_isolation":       {"read committed"},
	"default_transaction_read_only":       {"off", "false", "no", "0"},
	"client_encoding":                     {"UTF8", "UTF-8"},
	"lock_timeout":                        {"5s", ""},
	"idle_in_transaction_session_timeout": {"60s", ""},
}

// Open opens the database that dsn names, a URL or a list of name=value as libpq has it, for a
// sqlstore.Store; the tables are created by Store.Migrate. The package comment says what it sets.
// The caller closes it, and may change the limits of its pool (32 connections).
//
// order.ErrInvalid is returned for a DSN that sets what the store relies on otherwise. The error of
// a server that takes no writes says that it is read only.
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
		return nil, errors.Join(fmt.Errorf("open PostgreSQL: %w", err), db.Close())
	}
	return db, nil
}

// Connector makes the connections of Open, for programs that wrap them (tracing, fault injection)
// before sql.OpenDB.
func Connector(dsn string) (driver.Connector, error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("open PostgreSQL: %w: %w", order.ErrInvalid, err) // it hides the password
	}
	if err := refuse(cfg.RuntimeParams); err != nil {
		return nil, fmt.Errorf("open PostgreSQL: %w", err)
	}
	for name, values := range settings {
		if _, said := cfg.RuntimeParams[name]; !said {
			cfg.RuntimeParams[name] = values[0]
		}
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = connectTimeout
	}
	cfg.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	return stdlib.GetConnector(*cfg), nil
}

// refuse names the faults of a DSN.
func refuse(params map[string]string) error {
	var f check.Faults
	for name, value := range params {
		if values, ok := settings[name]; ok && !slices.Contains(values, "") && !slices.ContainsFunc(values, func(v string) bool {
			return strings.EqualFold(v, value)
		}) {
			f.Add(name, value, fmt.Sprintf("leave it out of the DSN: the store sets %q", values[0]))
		}
	}
	if v := params["synchronous_commit"]; slices.Contains([]string{"off", "false", "no", "0"}, strings.ToLower(v)) {
		f.Add("synchronous_commit", v, "leave it out of the DSN: a payment that was confirmed would be lost with the server")
	}
	if v := params["options"]; v != "" {
		f.Add("options", v, "give each setting by its own name: search_path=...")
	}
	return f.Err(order.ErrInvalid)
}

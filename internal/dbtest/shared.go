package dbtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	_ "github.com/go-sql-driver/mysql" // the driver "mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/orderwheel/orderwheel/internal/dbserver"
)

// Database is an empty database of one test, on a server that it shares.
type Database struct {
	Server *dbserver.Server // not to be killed
	name   string
	schema string // of PostgreSQL; "" elsewhere
}

// DSN is its data source name, for the usual driver.
func (d Database) DSN() string { return d.DSNAt(d.Server.Addr()) }

// DSNAt is DSN by way of another address, that of a proxy.
func (d Database) DSNAt(addr string) string {
	dsn := d.Server.DSNAt(addr, d.name)
	if d.schema != "" {
		dsn += "&search_path=" + d.schema
	}
	return dsn
}

// MariaDB makes an empty database on this process's MariaDB. It is dropped when t ends.
func MariaDB(t testing.TB) Database {
	t.Helper()
	return mariadb.database(t)
}

// Postgres makes an empty schema on this process's PostgreSQL, which is to a test what a database
// is, and is made in a hundredth of the time. It is dropped when t ends.
func Postgres(t testing.TB) Database {
	t.Helper()
	return postgres.database(t)
}

// StartMariaDB starts a MariaDB for one test alone, as dbserver does, and stops it when t ends.
func StartMariaDB(t testing.TB, args ...string) *dbserver.Server {
	t.Helper()
	return mariadb.private(t, args)
}

// StartPostgres starts a PostgreSQL for one test alone, as dbserver does, and stops it when t ends.
func StartPostgres(t testing.TB, args ...string) *dbserver.Server {
	t.Helper()
	return postgres.private(t, args)
}

// Stopping is m, with the shared servers stopped after the tests. Without it they die with the
// process and leave their data behind.
func Stopping(m interface{ Run() int }) interface{ Run() int } { return stopping{m} }

type stopping struct{ m interface{ Run() int } }

func (s stopping) Run() int {
	code := s.m.Run()
	for _, server := range []*shared{&mariadb, &postgres} {
		if err := server.stop(); err != nil {
			fmt.Fprintln(os.Stderr, "dbtest:", err)
			code = max(code, 1)
		}
	}
	return code
}

// shared is one server of this process.
type shared struct {
	driver, admin string // admin: a database that the server has from the start
	start         func(context.Context, ...string) (*dbserver.Server, error)
	create, drop  string // statements, but for the name
	all           string // after the name, to drop what is in it

	mu     sync.Mutex // held while it starts
	server *dbserver.Server
	err    error
	made   int
}

var (
	mariadb = shared{
		driver: "mysql", admin: "mysql", start: dbserver.StartMariaDB,
		create: "CREATE DATABASE ", drop: "DROP DATABASE ",
	}
	postgres = shared{
		driver: "pgx", admin: "postgres", start: dbserver.StartPostgres,
		create: "CREATE SCHEMA ", drop: "DROP SCHEMA ", all: " CASCADE",
	}
)

func (s *shared) database(t testing.TB) Database {
	t.Helper()
	s.mu.Lock()
	if s.server == nil && s.err == nil {
		s.server, s.err = s.start(context.Background())
	}
	s.made++
	name, err := fmt.Sprintf("test%d", s.made), s.err
	d := Database{Server: s.server, name: name}
	if s.driver == "pgx" {
		d.name, d.schema = s.admin, name
	}
	s.mu.Unlock()
	if err != nil {
		fail(t, err)
	}
	if err := s.exec(d.Server, s.create+name); err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	t.Cleanup(func() {
		if err := s.exec(d.Server, s.drop+name+s.all); err != nil {
			t.Errorf("dbtest: %v", err)
		}
	})
	return d
}

func (s *shared) exec(server *dbserver.Server, stmt string) error {
	db, err := sql.Open(s.driver, server.DSN(s.admin))
	if err != nil {
		return err
	}
	_, err = db.Exec(stmt)
	return errors.Join(err, db.Close())
}

func (s *shared) private(t testing.TB, args []string) *dbserver.Server {
	t.Helper()
	server, err := s.start(context.Background(), args...)
	if err != nil {
		fail(t, err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Errorf("dbtest: %v", err)
		}
	})
	return server
}

func (s *shared) stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil {
		return nil
	}
	err := s.server.Stop()
	s.server = nil
	return err
}

// fail skips or fails t because of a server that does not start.
func fail(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, dbserver.ErrNotInstalled) && os.Getenv("ORDERWHEEL_REQUIRE_SERVERS") != "1" {
		t.Skipf("SKIPPED, NOT TESTED: %v (Debian, Ubuntu: apt-get install mariadb-server postgresql)", err)
	}
	t.Fatalf("dbtest: %v", err)
}

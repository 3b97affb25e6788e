package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/orderwheel/orderwheel/bench/internal/rabbit"
	"github.com/orderwheel/orderwheel/bench/internal/scheme"
	"github.com/orderwheel/orderwheel/internal/dbserver"
)

// servers are the private servers of a run of this program, and its programs.
type servers struct {
	dir    string
	maria  *dbserver.Server
	dsn    string
	db     *sql.DB
	redis  *redisServer      // nil: absent
	rabbit *rabbit.Server    // nil: absent
	peers  string            // the program of bench/peers; empty: absent
	absent map[string]string // what is absent, and why
	pids   []int             // of the servers
}

const database = "shop"

// startServers starts those that the rows need and that are installed. Without the order
// database there is nothing to run.
func startServers(ctx context.Context, rows []row) (s *servers, err error) {
	s = &servers{absent: make(map[string]string)}
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	if s.dir, err = os.MkdirTemp("", "orderwheel-schemes-"); err != nil {
		return s, err
	}
	if err := s.startMaria(ctx); err != nil {
		return s, err
	}
	var redis, amqp, peers bool
	for _, r := range rows {
		for _, need := range r.needs {
			redis = redis || need == needsRedis
			amqp = amqp || need == needsRabbit
		}
		peers = peers || r.peer
	}
	if redis {
		if err := s.startRedis(ctx); err != nil {
			return s, err
		}
	}
	if amqp {
		if err := s.startRabbit(ctx); err != nil {
			return s, err
		}
	}
	if peers {
		s.buildPeers(ctx)
	}
	return s, nil
}

func (s *servers) startMaria(ctx context.Context) (err error) {
	// Two transactions may read a status and then both write it, as in MySQL. Later MariaDBs have one of
	// them fail by default.
	if s.maria, err = dbserver.StartMariaDB(ctx, "--loose-innodb-snapshot-isolation=OFF"); err != nil {
		return fmt.Errorf("the order database: %w", err)
	}
	admin, err := scheme.OpenDB(s.maria.DSN(""))
	if err != nil {
		return err
	}
	defer admin.Close()
	if _, err := admin.ExecContext(ctx, "CREATE DATABASE "+database); err != nil {
		return err
	}
	var pidFile string
	if err := admin.QueryRowContext(ctx, "SELECT @@pid_file").Scan(&pidFile); err != nil {
		return err
	}
	if err := s.watch(pidFile); err != nil {
		return err
	}
	s.dsn = s.maria.DSN(database)
	s.db, err = scheme.OpenDB(s.dsn)
	return err
}

func (s *servers) startRedis(ctx context.Context) error {
	if _, err := exec.LookPath(needsRedis); err != nil {
		s.absent[needsRedis] = "it is not installed"
		return nil
	}
	dir := filepath.Join(s.dir, "redis")
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		s.redis, err = startRedis(ctx, dir)
	}
	if err == nil {
		s.pids = append(s.pids, s.redis.cmd.Process.Pid)
	}
	return err
}

func (s *servers) startRabbit(ctx context.Context) error {
	node, err := rabbit.Start(ctx)
	if errors.Is(err, rabbit.ErrNotInstalled) {
		s.absent[needsRabbit] = "it is not installed"
		return nil
	}
	if err != nil {
		return err
	}
	s.rabbit = node
	s.pids = append(s.pids, node.PID())
	return nil
}

// watch counts the processor time of the server whose pid is in a file.
func (s *servers) watch(pidFile string) error {
	b, err := os.ReadFile(pidFile)
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return fmt.Errorf("%s: %w", pidFile, err)
	}
	s.pids = append(s.pids, pid)
	return nil
}

const peersAbsent = "bench/peers"

// buildPeers builds the program of the nested module.
func (s *servers) buildPeers(ctx context.Context) {
	program := filepath.Join(s.dir, "peers")
	if err := buildPeer(ctx, "schemes", program); err != nil {
		s.absent[peersAbsent] = err.Error()
		return
	}
	s.peers = program
}

// buildPeer builds a program of bench/peers.
func buildPeer(ctx context.Context, name, to string) error {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/orderwheel/orderwheel").Output()
	if err != nil {
		return fmt.Errorf("the folder of this module: %w", err)
	}
	build := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join(strings.TrimSpace(string(root)), "bench", "peers"), "-o", to, "./"+name)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s of bench/peers: %w\n%s", name, err, out)
	}
	return nil
}

// missing says what a row lacks; empty: nothing.
func (s *servers) missing(r row) string {
	for _, need := range r.needs {
		if why, absent := s.absent[need]; absent {
			return need + ": " + why
		}
	}
	if why, absent := s.absent[peersAbsent]; absent && r.peer {
		return why
	}
	return ""
}

// reset makes the servers' data as new.
func (s *servers) reset(ctx context.Context) error {
	if s.redis == nil {
		return nil
	}
	return s.redis.reset(ctx)
}

func (s *servers) count(ctx context.Context) (c counters, err error) {
	if c.queries, err = countQueries(ctx, s.db); err != nil {
		return c, err
	}
	if s.redis != nil {
		if c.commands, err = countCommands(ctx, s.redis.client); err != nil {
			return c, err
		}
	}
	for _, pid := range s.pids {
		c.cpu += cpuOf(pid)
	}
	return c, nil
}

// stop ends all of them and removes their files.
func (s *servers) stop() {
	if s.db != nil {
		_ = s.db.Close()
	}
	if s.maria != nil {
		_ = s.maria.Stop()
	}
	if s.redis != nil {
		s.redis.stop()
	}
	if s.rabbit != nil {
		s.rabbit.Stop()
	}
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
}

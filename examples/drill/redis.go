package main

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/orderwheel/orderwheel/internal/loopback"
)

// server is a Redis of our own: a redis-server, or where none is installed one
// in this process, which cannot be killed.
type server struct {
	addr string
	dir  string
	mini *miniredis.Miniredis // nil: a redis-server

	cmd  *exec.Cmd
	said *tail
}

const readyWithin = 30 * time.Second // a hang

// startRedis starts one on a free port of this machine, with its files in dir.
func startRedis(ctx context.Context, dir string) (*server, error) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		s := &server{mini: miniredis.NewMiniRedis()}
		if err := s.mini.Start(); err != nil {
			return nil, fmt.Errorf("start a Redis in the process: %w", err)
		}
		s.addr = s.mini.Addr()
		return s, nil
	}
	addr, err := loopback.FreeAddr()
	if err != nil {
		return nil, err
	}
	s := &server{addr: addr, dir: dir}
	return s, s.start(ctx)
}

// start starts the redis-server, again with what it has in its files.
func (s *server) start(ctx context.Context) error {
	_, port, _ := net.SplitHostPort(s.addr)
	s.said = new(tail)
	s.cmd = exec.Command("redis-server", "--bind", "127.0.0.1", "--port", port, "--dir", s.dir,
		"--save", "", "--appendonly", "yes", "--appendfsync", "everysec")
	s.cmd.Stdout, s.cmd.Stderr = s.said, s.said
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("start redis-server: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	if err := loopback.WaitRedis(ctx, s.addr); err != nil {
		s.kill()
		return fmt.Errorf("redis-server does not answer: %w\n%s", err, s.said)
	}
	return nil
}

// kill kills the redis-server with SIGKILL.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// stop ends the server; what it holds is not needed any more.
func (s *server) stop() {
	if s.mini != nil {
		s.mini.Close()
		return
	}
	s.kill()
}

// harm kills Redis and restarts it, at the instants of events.
func (r *round) harm(ctx context.Context, events []event) error {
	for _, e := range events {
		if !sleepUntil(ctx, r.at(e)) {
			return ctx.Err()
		}
		r.redis.kill()
		r.audit.RedisKilled()
		r.killed(e, "redis")
		if !sleepUntil(ctx, time.Now().Add(e.For)) {
			return ctx.Err()
		}
		if err := r.redis.start(ctx); err != nil {
			return err
		}
	}
	return nil
}

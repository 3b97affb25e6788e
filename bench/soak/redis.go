package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/orderwheel/orderwheel/internal/loopback"
)

const readyWithin = 10 * time.Second // a hang

// server is a redis-server of our own.
type server struct {
	addr string
	cmd  *exec.Cmd
}

// startRedis starts a redis-server on a free port of this machine, with its files in
// dir, that keeps what it has as one in production does.
func startRedis(ctx context.Context, dir string) (*server, error) {
	addr, err := loopback.FreeAddr()
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(addr)
	var said bytes.Buffer
	s := &server{addr: addr, cmd: exec.Command("redis-server", "--bind", "127.0.0.1", "--port", port, "--dir", dir,
		"--save", "", "--appendonly", "yes", "--appendfsync", "everysec", "--loglevel", "warning")}
	s.cmd.Stdout, s.cmd.Stderr = &said, &said
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start redis-server, which must be installed: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	if err := loopback.WaitRedis(ctx, addr); err != nil {
		s.stop()
		return nil, fmt.Errorf("redis-server does not answer: %w\n%s", err, said.String())
	}
	return s, nil
}

func newClient(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
}

// stop ends the server; what it holds is not needed any more.
func (s *server) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

package main

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/orderwheel/orderwheel/internal/childproc"
	"github.com/orderwheel/orderwheel/internal/loopback"
)

const readyWithin = time.Minute // a hang

// redisServer is a redis-server of our own.
type redisServer struct {
	addr   string
	cmd    *exec.Cmd
	client *redis.Client
}

// startRedis starts a redis-server on a free port of this machine, with its files in dir,
// that keeps what it has as one in production does.
func startRedis(ctx context.Context, dir string, args ...string) (*redisServer, error) {
	addr, err := loopback.FreeAddr()
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(addr)
	said := new(tail)
	s := &redisServer{addr: addr, cmd: exec.Command("redis-server", append([]string{"--bind", "127.0.0.1", "--port", port, "--dir", dir,
		"--save", "", "--appendonly", "yes", "--appendfsync", "everysec", "--loglevel", "warning"}, args...)...)}
	s.cmd.Stdout, s.cmd.Stderr = said, said
	s.cmd.SysProcAttr = childproc.DieWithParent()
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start redis-server: %w", err)
	}
	s.client = redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	if err := loopback.WaitRedis(ctx, addr); err != nil {
		s.stop()
		return nil, fmt.Errorf("redis-server does not answer: %w\n%s", err, said)
	}
	return s, nil
}

// reset makes it as it was when it had just been started.
func (s *redisServer) reset(ctx context.Context) error {
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.FlushAll(ctx)
		p.ConfigSet(ctx, "notify-keyspace-events", "")
		p.ConfigResetStat(ctx)
		return nil
	})
	return err
}

// stop ends the server; what it holds is not needed any more.
func (s *redisServer) stop() {
	_ = s.client.Close()
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

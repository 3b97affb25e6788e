// Package rabbit starts private RabbitMQ nodes, each with an epmd of its own, on free loopback
// ports of this machine. Nothing of them is left after Stop, and they die with the process that
// started them.
package rabbit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/orderwheel/orderwheel/internal/childproc"
	"github.com/orderwheel/orderwheel/internal/loopback"
)

// ErrNotInstalled is returned where the server, or epmd, is not found.
var ErrNotInstalled = errors.New("rabbitmq-server is not installed")

// bins are where the server's own script is. That on the PATH of Debian becomes the
// user rabbitmq and takes the machine's configuration.
var bins = []string{"/usr/lib/rabbitmq/bin/rabbitmq-server", "/usr/local/lib/rabbitmq/bin/rabbitmq-server"}

func find() (string, error) {
	if _, err := exec.LookPath("epmd"); err != nil {
		return "", ErrNotInstalled
	}
	for _, bin := range bins {
		if _, err := os.Stat(bin); err == nil {
			return bin, nil
		}
	}
	return "", ErrNotInstalled
}

// Server is one node.
type Server struct {
	dir   string
	ports [3]string // for clients, for other nodes, of epmd
	epmd  *exec.Cmd
	cmd   *exec.Cmd
	ended chan struct{} // closed when the node has ended and was waited for
}

const (
	readyWithin = 2 * time.Minute // a hang
	logFile     = "log"
)

// Start starts a node and waits until it takes connections. ctx bounds the start alone.
func Start(ctx context.Context) (*Server, error) {
	bin, err := find()
	if err != nil {
		return nil, err
	}
	s := &Server{ended: make(chan struct{})}
	if s.dir, err = os.MkdirTemp("", "orderwheel-rabbitmq-"); err != nil {
		return nil, err
	}
	if err := s.start(ctx, bin); err != nil {
		log, _ := os.ReadFile(filepath.Join(s.dir, logFile))
		s.Stop()
		return nil, fmt.Errorf("start RabbitMQ: %w\n%s", err, log)
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, bin string) error {
	for i := range s.ports {
		addr, err := loopback.FreeAddr()
		if err != nil {
			return err
		}
		_, s.ports[i], _ = net.SplitHostPort(addr)
	}
	log, err := os.Create(filepath.Join(s.dir, logFile))
	if err != nil {
		return err
	}
	defer log.Close()
	s.epmd = exec.Command("epmd", "-port", s.ports[2], "-address", "127.0.0.1")
	s.cmd = exec.Command(bin)
	s.cmd.Env = append(os.Environ(), s.environ()...)
	for _, cmd := range []*exec.Cmd{s.epmd, s.cmd} {
		cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, log, log
		cmd.SysProcAttr = childproc.DieWithParent()
		if err := cmd.Start(); err != nil {
			return err
		}
	}
	go func() {
		_ = s.cmd.Wait()
		close(s.ended)
	}()
	return s.wait(ctx)
}

// environ is all that keeps the node from the machine's own: its name, its ports, its files.
func (s *Server) environ() []string {
	none := filepath.Join(s.dir, "none")
	return []string{
		"HOME=" + s.dir,              // of the cookie
		"RUNNING_UNDER_SYSTEMD=true", // the script becomes the node, and asks for no terminal
		"RABBITMQ_NODENAME=orderwheel" + s.ports[0] + "@localhost",
		"RABBITMQ_NODE_IP_ADDRESS=127.0.0.1", "RABBITMQ_NODE_PORT=" + s.ports[0], "RABBITMQ_DIST_PORT=" + s.ports[1],
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1}",
		"ERL_EPMD_PORT=" + s.ports[2], "ERL_EPMD_ADDRESS=127.0.0.1",
		"RABBITMQ_BASE=" + s.dir, "RABBITMQ_MNESIA_BASE=" + s.dir, "RABBITMQ_LOG_BASE=" + s.dir, "RABBITMQ_PID_FILE=" + filepath.Join(s.dir, "pid"),
		"RABBITMQ_CONFIG_FILE=" + none, "RABBITMQ_ADVANCED_CONFIG_FILE=" + none, "RABBITMQ_CONF_ENV_FILE=" + none,
		"RABBITMQ_ENABLED_PLUGINS_FILE=" + filepath.Join(s.dir, "plugins"),
	}
}

// wait waits until the node takes connections.
func (s *Server) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", "127.0.0.1:"+s.ports[0])
		if err == nil {
			return conn.Close()
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-s.ended:
			return errors.New("it has ended")
		case <-ctx.Done():
			return fmt.Errorf("it does not take connections: %w", err)
		}
	}
}

// URL is the node's, for the user that a new node has.
func (s *Server) URL() string { return "amqp://guest:guest@127.0.0.1:" + s.ports[0] + "/" }

// PID is the process of the node.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Stop kills the node and its epmd, and removes their files.
func (s *Server) Stop() {
	if s.cmd != nil && s.cmd.Process != nil {
		_ = s.cmd.Process.Kill()
		<-s.ended
	}
	if s.epmd != nil && s.epmd.Process != nil {
		_ = s.epmd.Process.Kill()
		_ = s.epmd.Wait()
	}
	_ = os.RemoveAll(s.dir)
}

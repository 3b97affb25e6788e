package dbserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/orderwheel/orderwheel/internal/childproc"
)

// ErrNotInstalled is returned where the binaries of a server are not found.
var ErrNotInstalled = errors.New("not installed")

// Server is one private database server. Its methods may be called from any goroutine, but only one
// of Kill, Restart and Stop at a time.
type Server struct {
	flavour
	dir  string // holds the data, and nothing else; removed by Stop
	port int
	args []string // of the caller, after the defaults

	mu struct {
		sync.Mutex
		proc *process // nil: not running
	}
}

// flavour is what differs between the servers.
type flavour struct {
	name  string
	bin   string
	user  *syscall.Credential // whom it runs as; nil: as this process
	ready string              // the line of its log by which it says that it takes connections

	// end is the signal that ends it, and the children that it may have, at once.
	end syscall.Signal

	commandLine func(dir string, port int) []string
	dsn         func(addr, database string) string
}

// How long a server may take. They bound a hang: a healthy one takes a second or two.
const (
	readyWithin = 60 * time.Second
	endWithin   = 20 * time.Second
)

// start launches a server whose data folder install fills.
func start(ctx context.Context, f flavour, args []string, install func(ctx context.Context, dir string) error) (*Server, error) {
	s := &Server{flavour: f, args: args}
	var err error
	if s.dir, err = os.MkdirTemp("", "orderwheel-"+f.name+"-"); err != nil {
		return nil, err
	}
	if err = s.own(); err == nil {
		err = install(ctx, s.dir)
	}
	if err == nil {
		err = s.startOnFreePort(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", f.name, err), s.Stop())
	}
	return s, nil
}

// startOnFreePort tries again where the port, which was free when it was chosen, was taken by
// somebody before the server bound it.
func (s *Server) startOnFreePort(ctx context.Context) (err error) {
	for range 5 {
		if s.port, err = freePort(); err != nil {
			return err
		}
		var p *process
		if p, err = s.launch(); err != nil {
			return err
		}
		if err = p.waitReady(ctx); err == nil || !strings.Contains(err.Error(), syscall.EADDRINUSE.Error()) {
			return err
		}
		s.Kill()
	}
	return err
}

// own gives the data folder to whom the server runs as.
func (s *Server) own() error {
	if s.user == nil {
		return nil
	}
	return os.Chown(s.dir, int(s.user.Uid), int(s.user.Gid))
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("no free loopback port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// Addr is the server's host:port. It stays the same over Restart.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// DSN is the data source name of a database on the server, in the form of the usual driver: of
// go-sql-driver/mysql without parameters, or the URL of pgx.
func (s *Server) DSN(database string) string { return s.DSNAt(s.Addr(), database) }

// DSNAt is DSN by way of another address, that of a proxy.
func (s *Server) DSNAt(addr, database string) string { return s.dsn(addr, database) }

// Kill kills the server with SIGKILL, as a crash does, and waits until it is gone. It does nothing
// when the server is not running.
func (s *Server) Kill() { s.finish(syscall.SIGKILL) }

// Restart kills the server if it runs, starts it on the same port and data, and waits until it takes
// connections.
func (s *Server) Restart(ctx context.Context) error {
	s.Kill()
	for late := time.Now().Add(readyWithin); ; {
		p, err := s.launch()
		if err != nil {
			return err
		}
		if err = p.waitReady(ctx); err == nil {
			return nil
		}
		s.Kill()
		// The children of a PostgreSQL that was killed live on for a moment and keep its memory; a new
		// one ends at once then.
		if !errors.Is(err, errEnded) || time.Now().After(late) || ctx.Err() != nil {
			return fmt.Errorf("restart %s: %w", s.name, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Stop ends the server and removes its data. It may be called twice.
func (s *Server) Stop() error {
	s.finish(s.end)
	// Children of a killed server may write for a moment yet.
	var err error
	for range 100 {
		if err = os.RemoveAll(s.dir); err == nil {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("stop %s: %w", s.name, err)
}

func (s *Server) finish(sig syscall.Signal) {
	s.mu.Lock()
	p := s.mu.proc
	s.mu.proc = nil
	s.mu.Unlock()
	if p != nil {
		p.finish(sig)
	}
}

func (s *Server) launch() (*process, error) {
	cmd := exec.Command(s.bin, append(s.commandLine(s.dir, s.port), s.args...)...)
	cmd.Dir = s.dir
	cmd.Env = environ()
	cmd.SysProcAttr = childproc.DieWithParent()
	cmd.SysProcAttr.Credential = s.user
	p, err := run(cmd, s.ready)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", s.bin, err)
	}
	s.mu.Lock()
	s.mu.proc = p
	s.mu.Unlock()
	return p, nil
}

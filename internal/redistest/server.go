package redistest

import (
	"bytes"
	"cmp"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/orderwheel/orderwheel/internal/childproc"
)

// Server is one private redis-server. Its methods may be called from any
// goroutine, and fail the test by t.Fatal where the server does not obey, so
// call them from the test's own.
type Server struct {
	t    testing.TB
	kind kind
	bin  string
	dir  string
	args []string // of a sentinel: the lines of its configuration
	port int
	bus  int // of a node: the port by which the nodes of a Cluster talk

	mu struct {
		sync.Mutex
		proc   *process // nil: not running
		paused bool
		of     *Server       // its primary; nil: it is none's replica
		client *redis.Client // see control; nil: not needed so far
	}
}

// kind is what a redis-server is started as.
type kind int

const (
	single kind = iota
	node        // of a Cluster
	sentinel
)

// process is one run of the binary.
type process struct {
	cmd    *exec.Cmd
	output *bytes.Buffer // to be read only after gone is closed
	gone   chan struct{} // closed when the process has ended and was waited for
}

// Start starts a redis-server that persists nothing and waits until it
// answers. args are appended to the command line and override the defaults:
//
//	redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
//
// The server is killed, by its pid, when the test ends.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return start(t, single, args)
}

func start(t testing.TB, k kind, args []string) *Server {
	t.Helper()
	s := &Server{t: t, kind: k, bin: binary(t), dir: t.TempDir(), args: args}
	t.Cleanup(s.Kill)
	// The port is free when it is chosen, but anybody may take it before the
	// server binds it: then the server exits and another port is tried.
	var err error
	for range 5 {
		s.port = freePort(t)
		if k == node {
			s.bus = freePort(t)
		}
		if err = s.configure(); err != nil {
			break
		}
		if err = s.launch(); err != nil {
			break
		}
		if err = s.waitReady(); err == nil {
			return s
		}
		s.Kill()
	}
	t.Fatalf("redistest: redis-server does not start: %v", err)
	return nil
}

// binary finds redis-server, or skips or fails the test.
func binary(t testing.TB) string {
	t.Helper()
	bin, err := exec.LookPath(cmp.Or(os.Getenv("ORDERWHEEL_REDIS_SERVER"), "redis-server"))
	if err == nil {
		return bin
	}
	if os.Getenv("ORDERWHEEL_REQUIRE_SERVERS") == "1" {
		t.Fatal("redistest: redis-server is not installed, and ORDERWHEEL_REQUIRE_SERVERS=1 forbids to skip")
	}
	t.Skip("SKIPPED, NOT TESTED: redis-server is not installed (Debian, Ubuntu: apt-get install redis-server)")
	return ""
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("redistest: no free loopback port: %v", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// Addr is the server's host:port. It stays the same over Restart.
func (s *Server) Addr() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port))
}

// Client returns a new client of the server, closed when t ends. It listens to
// ctx (ContextTimeoutEnabled), as the docs of persist ask of every user.
func (s *Server) Client(t testing.TB) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.Addr(), ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Kill kills the server with SIGKILL, as a crash does, and waits until it is
// gone. It does nothing when the server is not running.
func (s *Server) Kill() {
	s.mu.Lock()
	p := s.mu.proc
	s.mu.proc, s.mu.paused = nil, false
	s.mu.Unlock()
	if p == nil {
		return
	}
	_ = p.cmd.Process.Kill() // also ends a paused process
	<-p.gone
}

// Pause stops the server with SIGSTOP: connections stay open, nothing answers.
func (s *Server) Pause() {
	s.t.Helper()
	s.signal(syscall.SIGSTOP, true)
}

// Resume lets a paused server go on.
func (s *Server) Resume() {
	s.t.Helper()
	s.signal(syscall.SIGCONT, false)
}

func (s *Server) signal(sig syscall.Signal, pauses bool) {
	s.t.Helper()
	s.mu.Lock()
	p := s.mu.proc
	s.mu.paused = pauses
	s.mu.Unlock()
	if p == nil {
		s.t.Fatalf("redistest: %v: the server is not running", sig)
	}
	if err := p.cmd.Process.Signal(sig); err != nil {
		s.t.Fatalf("redistest: %v: %v", sig, err)
	}
}

// Restart kills the server if it runs and starts it again with the same port,
// folder and arguments, as the replica that it was, and waits until it answers. What
// survives is what the arguments let survive.
func (s *Server) Restart() {
	s.t.Helper()
	s.Boot()
	if err := s.waitReady(); err != nil {
		s.t.Fatalf("redistest: redis-server does not start again: %v", err)
	}
}

// Boot is Restart without the wait: the server may still be loading its data.
func (s *Server) Boot() {
	s.t.Helper()
	s.Kill()
	if err := s.launch(); err != nil {
		s.t.Fatalf("redistest: %v", err)
	}
}

func (s *Server) launch() error {
	p := &process{cmd: exec.Command(s.bin, s.commandLine()...), output: new(bytes.Buffer), gone: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	p.cmd.SysProcAttr = childproc.DieWithParent()
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", s.bin, err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.gone)
	}()
	s.mu.Lock()
	s.mu.proc = p
	s.mu.Unlock()
	return nil
}

func (s *Server) commandLine() []string {
	if s.kind == sentinel {
		return []string{filepath.Join(s.dir, sentinelConfig), "--sentinel"}
	}
	args := append([]string{
		"--port", strconv.Itoa(s.port),
		"--bind", "127.0.0.1",
		"--dir", s.dir,
		"--save", "",
		"--appendonly", "no",
		"--daemonize", "no",
		"--repl-diskless-sync-delay", "0", // a replica need not wait for more of them
	}, s.args...)
	if s.kind == node {
		args = append(args, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(s.bus))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.of != nil {
		args = append(args, "--replicaof", "127.0.0.1", strconv.Itoa(s.mu.of.port))
	}
	return args
}

package dbserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// process is one run of a server's binary.
type process struct {
	cmd  *exec.Cmd
	log  *serverLog
	gone chan struct{} // closed when the process has ended and was waited for
}

// errEnded says that a server has ended by itself.
var errEnded = errors.New("it has ended")

func run(cmd *exec.Cmd, ready string) (*process, error) {
	p := &process{cmd: cmd, log: &serverLog{mark: []byte(ready), marked: make(chan struct{})}, gone: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.log, p.log
	cmd.WaitDelay = endWithin // children that outlive the server hold its output open
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = cmd.Wait()
		close(p.gone)
	}()
	return p, nil
}

// waitReady returns nil once the server has said that it is ready. Since it says so in its own log,
// after it has bound its port, no other server can be taken for it.
func (p *process) waitReady(ctx context.Context) error {
	late := time.NewTimer(readyWithin)
	defer late.Stop()
	select {
	case <-p.log.marked:
		return nil
	case <-p.gone:
		return fmt.Errorf("%w:\n%s", errEnded, p.log)
	case <-late.C:
		return fmt.Errorf("not ready within %v:\n%s", readyWithin, p.log)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// finish sends sig, and SIGKILL where that does not help, and waits for the end.
func (p *process) finish(sig syscall.Signal) {
	_ = p.cmd.Process.Signal(sig)
	late := time.NewTimer(endWithin)
	defer late.Stop()
	select {
	case <-p.gone:
	case <-late.C:
		_ = p.cmd.Process.Kill()
		<-p.gone
	}
}

// serverLog keeps the end of a server's log, and closes marked when a line of it has mark.
type serverLog struct {
	mark   []byte
	marked chan struct{}

	mu  sync.Mutex
	end []byte
	saw bool
}

const keptLog = 16 << 10

func (l *serverLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end = append(l.end, b...)
	if !l.saw && bytes.Contains(l.end, l.mark) {
		l.saw = true
		close(l.marked)
	}
	if len(l.end) > 2*keptLog {
		l.end = append(l.end[:0], l.end[len(l.end)-keptLog:]...)
	}
	return len(b), nil
}

func (l *serverLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.end)
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/orderwheel/orderwheel/bench/internal/scheme"
	"github.com/orderwheel/orderwheel/internal/childproc"
)

// process is a child that runs one scheme. One goroutine at a time may call its methods.
type process struct {
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	told chan string // what it tells; closed when it has ended
	said *tail
	err  error // how it ended; to be read when told is closed
}

// spawn starts program with a job.
func spawn(ctx context.Context, program string, j scheme.Job) (*process, error) {
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	p := &process{name: j.Scheme, cmd: exec.Command(program), told: make(chan string, 16), said: new(tail)}
	p.cmd.Env = append(os.Environ(), scheme.JobVariable+"="+string(text))
	p.cmd.Stderr = p.said
	p.cmd.SysProcAttr = childproc.DieWithParent()
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.told <- lines.Text()
		}
		p.err = p.cmd.Wait()
		close(p.told)
	}()
	if err := p.await(ctx, scheme.TellStarted); err != nil {
		p.kill()
		return nil, err
	}
	return p, nil
}

func (p *process) tell(what string) { _, _ = fmt.Fprintln(p.in, what) }

// await waits for a line. It is an error if the process ends first.
func (p *process) await(ctx context.Context, line string) error {
	for {
		select {
		case got, more := <-p.told:
			if !more {
				return fmt.Errorf("the process of %s ended: %v\n%s", p.name, p.err, p.said)
			}
			if got == line {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// kill kills it with SIGKILL and waits for its end.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	for range p.told {
	}
	_ = p.in.Close()
}

// stop has it end by itself.
func (p *process) stop(ctx context.Context) error {
	p.tell(scheme.TellStop)
	late := time.NewTimer(stopWithin)
	defer late.Stop()
	for {
		select {
		case _, more := <-p.told:
			if more {
				continue
			}
			_ = p.in.Close()
			if p.err != nil {
				return fmt.Errorf("the process of %s: %w\n%s", p.name, p.err, p.said)
			}
			return nil
		case <-late.C:
			p.kill()
			return fmt.Errorf("the process of %s did not stop within %v\n%s", p.name, stopWithin, p.said)
		case <-ctx.Done():
			p.kill()
			return ctx.Err()
		}
	}
}

const stopWithin = 30 * time.Second // a hang

// tail keeps the last of what is written to it.
type tail struct {
	mu struct {
		sync.Mutex
		text []byte
	}
}

const tailSize = 4 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.text = append(t.mu.text, b...)
	t.mu.text = bytes.Clone(t.mu.text[max(0, len(t.mu.text)-tailSize):])
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.mu.text))
}

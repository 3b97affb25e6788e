package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A job is what a worker is to do. The drill hands it over in the environment
// of the process.
type job struct {
	Dir   string // of the database and the audit's notes
	Redis string // host:port

	Orders    int
	Seed      uint64
	Start     time.Time     // when the first order is created
	Spread    time.Duration // until the last one is
	Processes int
	Slot      int  // of them: its orders are those whose number it is, modulo Processes
	Idle      bool // it creates, pays and extends nothing

	Spawned time.Time
	Step    step // where to wait to be killed; empty: nowhere
	Hold    bool // see worker.hold
}

// What the drill and a worker tell each other, a line for each.
const (
	tellStarted = "started" // MICROSECONDS: the engine's Start has returned
	tellAt      = "at"      // STEP: here I wait
	tellHolding = "holding" // COUNT
	tellWait    = "wait"    // STEP: there you wait
	tellStop    = "stop"
)

const jobVariable = "ORDERWHEEL_DRILL_JOB"

// jobOfThisProcess is the job if this process is a worker.
func jobOfThisProcess() (j job, ok bool) {
	text := os.Getenv(jobVariable)
	return j, text != "" && json.Unmarshal([]byte(text), &j) == nil
}

// process is a worker as the drill sees it. One goroutine at a time may call its
// methods.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	told   chan string // what it tells; closed when it has ended
	stderr *tail
	err    error // how it ended; to be read when told is closed
}

// spawn starts program, which is this one, as a worker.
func spawn(program string, j job) (*process, error) {
	j.Spawned = time.Now()
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(program), told: make(chan string, 16), stderr: new(tail)}
	p.cmd.Env = append(os.Environ(), jobVariable+"="+string(text))
	p.cmd.Stderr = p.stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.told <- lines.Text()
		}
		p.err = p.cmd.Wait()
		close(p.told)
	}()
	return p, nil
}

// tell tells the worker something. One that has ended hears nothing.
func (p *process) tell(what ...any) { _, _ = fmt.Fprintln(p.in, what...) }

// kill kills the worker with SIGKILL and waits for its end. A worker that had
// ended by itself is an error.
func (p *process) kill() error {
	_ = p.cmd.Process.Kill()
	for range p.told {
	}
	_ = p.in.Close()
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGKILL {
		return nil
	}
	return p.failed()
}

// failed is the error of a worker that has ended when it should not have.
func (p *process) failed() error {
	return fmt.Errorf("a worker failed: %w\n%s", cmp.Or(p.err, errEnded), p.stderr)
}

var errEnded = errors.New("it ended by itself")

// await waits for a line that begins with verb, and gives the rest of it. It is
// an error if the worker ends first, ctx's if that ends first. Other lines go to
// heard.
func (p *process) await(ctx context.Context, verb string, heard func(verb, rest string)) (string, error) {
	for {
		select {
		case line, more := <-p.told:
			if !more {
				return "", p.failed()
			}
			v, rest, _ := strings.Cut(line, " ")
			heard(v, rest)
			if v == verb {
				return rest, nil
			}
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// tail keeps the last of what is written to it.
type tail struct {
	mu struct {
		sync.Mutex
		text []byte
	}
}

const tailSize = 8 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.text = append(t.mu.text, b...)
	t.mu.text = t.mu.text[max(0, len(t.mu.text)-tailSize):]
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.mu.text)
}

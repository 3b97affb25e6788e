package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/examples/internal/audit"
)

// notesDir is the environment variable that makes this test binary a shop, whose engine's calls
// are noted in that folder.
const notesDir = "ORDERWHEEL_SHOP_NOTES"

// childLease is short, so that what a killed shop was closing is soon closed by the next.
const childLease = 2 * time.Second

// child is main with the notes. It ends with the test that has started it.
func child(dir string, args []string) int {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	err := func() error {
		o, err := parseFlags(args)
		if err != nil {
			return err
		}
		notes, err := audit.OpenNotes(dir)
		if err != nil {
			return err
		}
		o.tune = func(c *orderwheel.Config) {
			c.BatchHandler = notes.WrapBatch(c.BatchHandler)
			c.Lease = childLease
		}
		if err := run(ctx, o, os.Stderr); err != nil {
			return err
		}
		return notes.Close()
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// process is a shop in a process of its own.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	url  string
	logs chan string // its lines; closed at its end
}

// startProcess starts a shop on the database and the notes in dir, and waits until it listens.
func startProcess(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	p := &process{t: t, logs: make(chan string, 1000)}
	p.cmd = exec.Command(os.Args[0], append([]string{"-addr", "127.0.0.1:0", "-db", filepath.Join(dir, "shop.db")}, args...)...)
	p.cmd.Env = append(os.Environ(), notesDir+"="+dir)
	in, err := p.cmd.StdinPipe()
	require.NoError(t, err)
	errs, err := p.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go func() {
		defer close(p.logs)
		for lines := bufio.NewScanner(errs); lines.Scan(); {
			select {
			case p.logs <- lines.Text():
			default: // nobody reads so many
			}
		}
	}()
	t.Cleanup(func() {
		_ = in.Close()
		p.kill()
	})
	_, rest, _ := strings.Cut(p.await("msg=listening"), "url=")
	p.url, _, _ = strings.Cut(rest, " ")
	return p
}

// await waits for a line with text.
func (p *process) await(text string) string {
	p.t.Helper()
	var seen []string
	timeout := time.After(hang)
	for {
		select {
		case line, more := <-p.logs:
			seen = append(seen, line)
			if strings.Contains(line, text) {
				return line
			}
			require.True(p.t, more, "it ended without %q:\n%s", text, strings.Join(seen, "\n"))
		case <-timeout:
			require.FailNow(p.t, "no "+text, "%s", strings.Join(seen, "\n"))
		}
	}
}

// kill kills it with SIGKILL, and waits for its end; one that has ended stays so.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	p.wait()
}

// wait waits for the end, and gives the exit status.
func (p *process) wait() int {
	for range p.logs {
	}
	_ = p.cmd.Wait()
	return p.cmd.ProcessState.ExitCode()
}

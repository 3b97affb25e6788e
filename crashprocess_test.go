package orderwheel_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/internal/logbuffer"
)

// crashProcess is a child of the test.
type crashProcess struct {
	s    *crashShop
	cmd  *exec.Cmd
	in   io.Closer
	told chan string // what it said beside the calls of its handler; closed at the end
	errs logbuffer.Buffer
}

// crashRun is one call of the handler.
type crashRun struct {
	id      string
	attempt int
	source  string
	ms      int64 // Unix, by the clock of the process
}

// spawn starts a process that works in the shop.
func (s *crashShop) spawn(j crashJob) *crashProcess {
	s.t.Helper()
	j.Redis, j.DB = s.redis.Options().Addr, s.path
	text, err := json.Marshal(j)
	require.NoError(s.t, err)
	exe, err := os.Executable()
	require.NoError(s.t, err)
	p := &crashProcess{s: s, cmd: exec.Command(exe), told: make(chan string, 1)}
	p.cmd.Env = append(os.Environ(), crashChildJob+"="+string(text))
	p.cmd.Stderr = &p.errs
	p.in, err = p.cmd.StdinPipe()
	require.NoError(s.t, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(s.t, err)
	require.NoError(s.t, p.cmd.Start())
	go p.listen(out)
	s.t.Cleanup(func() {
		if p.cmd.ProcessState == nil { // the test has failed
			_ = p.cmd.Process.Kill()
			p.end()
		}
		if s.t.Failed() {
			s.t.Logf("what a process said:\n%s", p.errs.String())
		}
	})
	return p
}

// listen notes the calls of the handler, and passes on the rest of what the process says.
func (p *crashProcess) listen(out io.Reader) {
	defer close(p.told)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var r crashRun
		if _, err := fmt.Sscanf(lines.Text(), "ran %s %d %s %d", &r.id, &r.attempt, &r.source, &r.ms); err == nil {
			p.s.ran = append(p.s.ran, r)
		} else {
			p.told <- lines.Text()
		}
	}
}

// end waits until the process has ended, and all that it said is noted.
func (p *crashProcess) end() (said []string, err error) {
	for line := range p.told {
		said = append(said, line)
	}
	return said, p.cmd.Wait()
}

// stop tells the process to stop; it ends well.
func (p *crashProcess) stop() {
	p.s.t.Helper()
	require.NoError(p.s.t, p.in.Close())
	said, err := p.end()
	require.NoError(p.s.t, err)
	require.Empty(p.s.t, said)
}

// killedAt runs a process until it is at its step, and kills it there (kill -9).
func (s *crashShop) killedAt(j crashJob) {
	s.t.Helper()
	p := s.spawn(j)
	select {
	case line, ok := <-p.told:
		require.True(s.t, ok, "the process has ended before the step")
		require.Equal(s.t, fmt.Sprint("at ", j.Step), line)
	case <-time.After(crashHang):
		s.t.Fatalf("the process did not come to the step %q", j.Step)
	}
	require.NoError(s.t, p.cmd.Process.Kill())
	_, err := p.end()
	require.ErrorContains(s.t, err, "killed")
}

package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// readyWithin bounds how long a server may take until it answers. It bounds a
// hang; a healthy server is ready within milliseconds.
const readyWithin = 10 * time.Second

// waitReady returns nil once the server answers, and an error when its process
// has ended or the time is over.
func (s *Server) waitReady() error {
	s.mu.Lock()
	p := s.mu.proc
	s.mu.Unlock()

	late := time.NewTimer(readyWithin)
	defer late.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		err := answers(s.Addr(), p.cmd.Process.Pid)
		if err == nil {
			return nil
		}
		select {
		case <-p.gone:
			return errors.New("redis-server has ended:\n" + p.output.String())
		case <-late.C:
			return fmt.Errorf("not ready within %v: %w", readyWithin, err)
		case <-tick.C:
		}
	}
}

// answers asks the server at addr whether it is ready and whether it is the
// process we mean: another server may have taken the port. It speaks the
// protocol by hand, since a client of a library would log each failed dial.
func answers(addr string, pid int) error {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	r := bufio.NewReader(conn)

	if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
		return err
	}
	line, err := r.ReadString('\n')
	if err != nil {
		return err
	}
	if line != "+PONG\r\n" {
		return fmt.Errorf("PING was answered by %q", line)
	}

	if _, err := io.WriteString(conn, "INFO server\r\n"); err != nil {
		return err
	}
	line, err = r.ReadString('\n')
	if err != nil {
		return err
	}
	size, err := strconv.Atoi(strings.Trim(line, "$\r\n"))
	if err != nil {
		return fmt.Errorf("INFO was answered by %q", line)
	}
	info := make([]byte, size)
	if _, err := io.ReadFull(r, info); err != nil {
		return err
	}
	if !strings.Contains(string(info), fmt.Sprintf("process_id:%d\r\n", pid)) {
		return errors.New("another server has this port")
	}
	return nil
}

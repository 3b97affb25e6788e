package audit

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// noted is what the files of all processes say.
type noted struct {
	calls   []*call
	moves   []move
	killsUS []int64 // of Redis
}

// call is a row of audit_calls.
type call struct {
	id, process     string // process: the part of id that its file has
	pid             int
	orderNo, source string
	attempt         int
	nowUS           int64
	claim           string
	entryUS         int64
	commitUS        sql.NullInt64  // not valid: the handler has not returned
	err             sql.NullString // not valid: it has returned nothing
}

// move is a Schedule of an order to a later instant that has returned nil.
type move struct {
	process       string
	begunUS, atUS int64
	expireMS      int64
	orderNo       string
}

// readLogs reads the files of every process that noted anything in dir.
func readLogs(dir string) (*noted, error) {
	paths, err := filepath.Glob(filepath.Join(dir, logPrefix+"*"+logSuffix))
	if err != nil {
		return nil, err
	}
	n := new(noted)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		process := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), logPrefix), logSuffix)
		if err := n.parse(process, string(text)); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return n, nil
}

// parse reads the file of one process. A last line without its newline was cut
// by a kill and is left out: its handler had not been called yet, or its return
// is not known to the engine either.
func (n *noted) parse(process, text string) error {
	digits, _, _ := strings.Cut(process, "-")
	pid, err := strconv.Atoi(digits)
	if err != nil {
		return fmt.Errorf("the name has no pid: %w", err)
	}
	entered := map[string]*call{} // by number
	for line := 1; ; line++ {
		event, rest, whole := strings.Cut(text, "\n")
		if !whole {
			return nil
		}
		text = rest
		var err error
		switch kind, event, _ := strings.Cut(event, " "); kind {
		case "enter":
			err = n.parseEnter(process, pid, event, entered)
		case "leave":
			err = parseLeave(event, entered)
		case "moved":
			err = n.parseMoved(process, event)
		case "killed":
			var us int64
			us, err = strconv.ParseInt(event, 10, 64)
			n.killsUS = append(n.killsUS, us)
		default:
			err = errors.New("no such event")
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
}

func (n *noted) parseEnter(process string, pid int, event string, entered map[string]*call) error {
	f := strings.SplitN(event, " ", 7)
	if len(f) < 7 {
		return io.ErrUnexpectedEOF
	}
	c := &call{id: process + "-" + f[0], process: process, pid: pid, claim: f[3], source: f[5]}
	var errs [4]error
	c.entryUS, errs[0] = strconv.ParseInt(f[1], 10, 64)
	c.nowUS, errs[1] = strconv.ParseInt(f[2], 10, 64)
	c.attempt, errs[2] = strconv.Atoi(f[4])
	c.orderNo, errs[3] = strconv.Unquote(f[6])
	n.calls = append(n.calls, c)
	entered[f[0]] = c
	return errors.Join(errs[:]...)
}

func parseLeave(event string, entered map[string]*call) error {
	f := strings.SplitN(event, " ", 3)
	if len(f) < 3 {
		return io.ErrUnexpectedEOF
	}
	c := entered[f[0]]
	if c == nil {
		return fmt.Errorf("call %s was not entered", f[0])
	}
	us, err1 := strconv.ParseInt(f[1], 10, 64)
	text, err2 := strconv.Unquote(f[2])
	c.commitUS = sql.NullInt64{Int64: us, Valid: true}
	c.err = sql.NullString{String: text, Valid: text != ""}
	return errors.Join(err1, err2)
}

func (n *noted) parseMoved(process, event string) error {
	f := strings.SplitN(event, " ", 4)
	if len(f) < 4 {
		return io.ErrUnexpectedEOF
	}
	m := move{process: process}
	var errs [4]error
	m.begunUS, errs[0] = strconv.ParseInt(f[0], 10, 64)
	m.atUS, errs[1] = strconv.ParseInt(f[1], 10, 64)
	m.expireMS, errs[2] = strconv.ParseInt(f[2], 10, 64)
	m.orderNo, errs[3] = strconv.Unquote(f[3])
	n.moves = append(n.moves, m)
	return errors.Join(errs[:]...)
}

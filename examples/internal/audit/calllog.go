package audit

import (
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/orderwheel/orderwheel/executor"
)

// callLog is the file of one process's calls, one line for each event:
//
//	enter NUMBER MICROSECONDS ATTEMPT SOURCE "ORDER NO"
//	leave NUMBER MICROSECONDS "ERROR"
//
// The file is opened with O_APPEND and each line is one write, so the lines of
// several goroutines do not mix.
type callLog struct {
	file   *os.File
	calls  atomic.Uint64 // begun
	failed atomic.Pointer[error]
}

const (
	logPrefix = "audit-"
	logSuffix = ".log"
)

func newCallLog(dir string) (*callLog, error) {
	// The name tells the calls of this process from those of others.
	path := filepath.Join(dir, logPrefix+rand.Text()+logSuffix)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &callLog{file: file}, nil
}

func (l *callLog) close() error { return l.file.Close() }

func (l *callLog) enter(at time.Time, t executor.Task) (number uint64) {
	number = l.calls.Add(1)
	l.write("enter %d %d %d %s %q\n", number, at.UnixMicro(), t.Attempt, t.Source, t.ID)
	return number
}

func (l *callLog) leave(at time.Time, number uint64, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	l.write("leave %d %d %q\n", number, at.UnixMicro(), text)
}

func (l *callLog) write(format string, args ...any) {
	if _, err := fmt.Fprintf(l.file, format, args...); err != nil {
		l.failed.CompareAndSwap(nil, &err)
	}
}

// err is the first write that failed.
func (l *callLog) err() error {
	if err := l.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// call is a row of audit_calls.
type call struct {
	id, orderNo, source string
	attempt             int
	entryUS             int64
	commitUS            sql.NullInt64  // not valid: the handler has not returned
	err                 sql.NullString // not valid: it has returned nothing
}

// readLogs returns the calls of every process that noted any in dir.
func readLogs(dir string) ([]*call, error) {
	paths, err := filepath.Glob(filepath.Join(dir, logPrefix+"*"+logSuffix))
	if err != nil {
		return nil, err
	}
	var calls []*call
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		session := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), logPrefix), logSuffix)
		more, err := parseLog(session, string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		calls = append(calls, more...)
	}
	return calls, nil
}

// parseLog reads the file of one process. A last line without its newline was
// cut by a kill and is left out: its handler had not been called yet, or its
// return is not known to the engine either.
func parseLog(session, text string) ([]*call, error) {
	var calls []*call
	entered := map[string]*call{} // by number
	for n := 1; ; n++ {
		line, rest, whole := strings.Cut(text, "\n")
		if !whole {
			return calls, nil
		}
		text = rest
		var err error
		switch kind, event, _ := strings.Cut(line, " "); kind {
		case "enter":
			var c call
			number := ""
			if number, err = c.parseEnter(event); err == nil {
				c.id = session + "-" + number
				calls = append(calls, &c)
				entered[number] = &c
			}
		case "leave":
			err = parseLeave(event, entered)
		default:
			err = errors.New("neither enter nor leave")
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
}

func (c *call) parseEnter(event string) (number string, err error) {
	f := strings.SplitN(event, " ", 5)
	if len(f) < 5 {
		return "", io.ErrUnexpectedEOF
	}
	var errs [3]error
	c.entryUS, errs[0] = strconv.ParseInt(f[1], 10, 64)
	c.attempt, errs[1] = strconv.Atoi(f[2])
	c.source = f[3]
	c.orderNo, errs[2] = strconv.Unquote(f[4])
	return f[0], errors.Join(errs[:]...)
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

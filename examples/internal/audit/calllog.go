package audit

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/orderwheel/orderwheel/executor"
)

// callLog is the file of one process, one line for each event. All instants are
// of its clock, in Unix microseconds, but NOW, the store's as the task has it:
//
//	enter  NUMBER INSTANT NOW CLAIM ATTEMPT SOURCE "ORDER NO"
//	leave  NUMBER INSTANT "ERROR"
//	moved  BEGUN INSTANT EXPIRE_AT_MS "ORDER NO"
//	killed INSTANT
//
// CLAIM is claimed or unclaimed. The file is opened with O_APPEND and each line
// is one write, so the lines of several goroutines do not mix.
type callLog struct {
	file   *os.File
	calls  atomic.Uint64 // begun
	failed atomic.Pointer[error]
}

const (
	logPrefix = "audit-"
	logSuffix = ".log"
)

// How a call came to its task.
const (
	claimed   = "claimed"
	unclaimed = "unclaimed"
)

func newCallLog(dir string) (*callLog, error) {
	// The name tells the calls of this process from those of others, also of one
	// that had the same pid before.
	path := filepath.Join(dir, fmt.Sprintf("%s%d-%s%s", logPrefix, os.Getpid(), rand.Text(), logSuffix))
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &callLog{file: file}, nil
}

func (l *callLog) close() error { return l.file.Close() }

func (l *callLog) enter(at time.Time, t executor.Task) (number uint64) {
	number = l.calls.Add(1)
	l.write("enter %d %d %d %s %d %s %q\n", number, at.UnixMicro(), t.Now.UnixMicro(), claimOf(t), t.Attempt, t.Source, t.ID)
	return number
}

// claimOf says how a call came to its task: by a claim, or, while Redis was away,
// without one.
func claimOf(t executor.Task) string {
	if t.Unclaimed {
		return unclaimed
	}
	return claimed
}

func (l *callLog) leave(at time.Time, number uint64, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	l.write("leave %d %d %q\n", number, at.UnixMicro(), text)
}

func (l *callLog) moved(begun, at time.Time, orderNo string, expireAt time.Time) {
	l.write("moved %d %d %d %q\n", begun.UnixMicro(), at.UnixMicro(), expireAt.UnixMilli(), orderNo)
}

func (l *callLog) killed(at time.Time) { l.write("killed %d\n", at.UnixMicro()) }

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

package scheme

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Call is one call of the handler.
type Call struct {
	Order  int // its number in the plan
	Entry  time.Time
	Result Result // 0: an error
}

const callSize = 8 + 8 + 1

// callLog is a file of calls. Each is written at once, so that a kill loses none that had ended.
type callLog struct{ file *os.File }

func openCallLog(name string) (callLog, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return callLog{f}, err
}

func (l callLog) add(c Call) error {
	b := make([]byte, 0, callSize)
	b = binary.LittleEndian.AppendUint64(b, uint64(c.Order))
	b = binary.LittleEndian.AppendUint64(b, uint64(c.Entry.UnixNano()))
	b = append(b, byte(c.Result))
	_, err := l.file.Write(b)
	return err
}

// ReadCalls reads what a process has noted, in no order.
func ReadCalls(name string) ([]Call, error) {
	b, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(b)%callSize != 0 {
		return nil, fmt.Errorf("%s: %w", name, io.ErrUnexpectedEOF)
	}
	calls := make([]Call, 0, len(b)/callSize)
	for ; len(b) > 0; b = b[callSize:] {
		calls = append(calls, Call{
			Order:  int(binary.LittleEndian.Uint64(b)),
			Entry:  time.Unix(0, int64(binary.LittleEndian.Uint64(b[8:]))),
			Result: Result(b[16]),
		})
	}
	return calls, nil
}

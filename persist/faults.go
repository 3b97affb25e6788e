package persist

import (
	"errors"
	"fmt"
)

// maxFaults bounds the message for a batch in which everything is wrong.
const maxFaults = 10

// faults collects what is wrong with a batch, to report it at once.
type faults []error

// add notes err, unless it is nil.
func (f *faults) add(err error) {
	if err != nil {
		*f = append(*f, err)
	}
}

// full reports whether the message is long enough.
func (f faults) full() bool { return len(f) >= maxFaults }

func (f faults) err() error {
	if f.full() {
		f = append(f, fmt.Errorf("%w: and maybe more", ErrInvalid))
	}
	return errors.Join(f...)
}

func checkID(i int, id string) error {
	switch {
	case id == "":
		return fmt.Errorf("%w: ID of task %d is empty: use 1 to %d bytes", ErrInvalid, i, MaxIDLen)
	case len(id) > MaxIDLen:
		return fmt.Errorf("%w: ID of task %d is %q... of %d bytes: use 1 to %d bytes", ErrInvalid, i, id[:32], len(id), MaxIDLen)
	}
	return nil
}

func checkDueMS(i int, dueMS int64) error {
	if dueMS < 0 || dueMS > MaxDueMS {
		return fmt.Errorf("%w: DueMS of task %d is %d: use Unix milliseconds from 0 (1970) to %d (end of 9999)",
			ErrInvalid, i, dueMS, int64(MaxDueMS))
	}
	return nil
}

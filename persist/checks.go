package persist

import (
	"fmt"
	"time"
)

// The arguments that several stores take, checked before anything is written.

func checkIDs(ids []string) error {
	return checkEach(ids, func(f *faults, i int, id string) { f.add(checkID(i, id)) })
}

func checkDues(dues []Due) error {
	return checkEach(dues, func(f *faults, i int, d Due) {
		f.add(checkID(i, d.ID))
		f.add(checkDueMS(i, d.DueMS))
	})
}

func checkRetries(retries []Retry) error {
	return checkEach(retries, func(f *faults, i int, re Retry) { f.add(checkDueMS(i, re.DueMS)) })
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

func checkMaxAttempts(n int) error {
	if n < 0 {
		return fmt.Errorf("%w: maxAttempts is %d: it must be at least 1, or 0 for no limit", ErrInvalid, n)
	}
	return nil
}

func checkLease(lease time.Duration) error {
	if lease <= 0 {
		return fmt.Errorf("%w: lease is %v: it must be longer than 0", ErrInvalid, lease)
	}
	return nil
}

func checkLimit(limit int) error {
	if limit < 1 {
		return fmt.Errorf("%w: limit is %d: it must be at least 1", ErrInvalid, limit)
	}
	return nil
}

// fromStart makes a cursor before all times the one before everything.
func fromStart(c Cursor) Cursor {
	if c.DueMS < 0 {
		return Cursor{}
	}
	return c
}

// cutReason cuts a burial's reason to MaxReasonLen bytes.
func cutReason(reason string) string { return reason[:min(len(reason), MaxReasonLen)] }

package persist

import (
	"fmt"
	"time"
)

// checkIDs checks a list of ids.
func checkIDs(ids []string) error {
	var f faults
	for i, id := range ids {
		if f.add(checkID(i, id)); f.full() {
			break
		}
	}
	return f.err()
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

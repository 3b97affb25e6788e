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

// checkEach checks every item of a list, until the message is long enough.
func checkEach[T any](list []T, check func(f *faults, i int, one T)) error {
	var f faults
	for i, one := range list {
		if check(&f, i, one); f.full() {
			break
		}
	}
	return f.err()
}

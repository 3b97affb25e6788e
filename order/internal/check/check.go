// Package check collects the faults of an input, so that its sender hears of all of them at once.
package check

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds of what an order store accepts. They hold in every SQL dialect, so that an order moves
// from one database to another unchanged.
const (
	MaxIDLen    = 256             // bytes of an order number, user, sku, coupon or payment id
	MaxQuantity = 1_000_000_000   // units of one order line
	MaxStock    = 1 << 53         // units added to one sku at once; the sum of a few stays far below an int64
	MaxMS       = 253402300799999 // the last millisecond of year 9999
)

// Faults is a list of faults; the zero value has none.
type Faults struct{ list []string }

// Add notes that field has an unacceptable value and says what to do about it.
func (f *Faults) Add(field string, value any, remedy string) {
	f.list = append(f.list, fmt.Sprintf("%s is %v: %s", field, value, remedy))
}

// Fits reports whether a text key of every SQL dialect can hold id as it is.
func Fits(id string) bool {
	return id != "" && len(id) <= MaxIDLen && utf8.ValidString(id) && !strings.ContainsRune(id, 0)
}

// ID notes an id that does not fit.
func (f *Faults) ID(field, id string) {
	if Fits(id) {
		return
	}
	f.Add(field, Quote(id), fmt.Sprintf("give 1 to %d bytes of UTF-8 without a NUL", MaxIDLen))
}

// Instant notes an instant that the engine could not schedule.
func (f *Faults) Instant(field string, t time.Time) {
	if ms := t.UnixMilli(); ms < 0 || ms > MaxMS {
		f.Add(field, t.Format(time.RFC3339Nano), "give an instant of the years 1970 to 9999")
	}
}

// Range notes a number outside lo to hi.
func (f *Faults) Range(field string, n, lo, hi int64) {
	if n < lo || n > hi {
		f.Add(field, n, fmt.Sprintf("give %d to %d", lo, hi))
	}
}

// Err is nil when there are no faults, else one error that names all of them and wraps kind.
func (f *Faults) Err(kind error) error {
	if len(f.list) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", kind, errors.New(strings.Join(f.list, "; ")))
}

// Quote quotes an id for a message, cut where it is too long to read.
func Quote(id string) string {
	if len(id) <= MaxIDLen {
		return fmt.Sprintf("%q", id)
	}
	return fmt.Sprintf("%.32q and so on, %d bytes", id, len(id))
}

package order

import "time"

// CeilMS is the first Unix millisecond that is not before t. An instant at which something ends is
// stored rounded up, so that it is never taken for passed too early; the instant that is compared
// with it is rounded down (time.Time.UnixMilli does that).
func CeilMS(t time.Time) int64 {
	ms := t.UnixMilli()
	if time.UnixMilli(ms).Before(t) {
		ms++
	}
	return ms
}

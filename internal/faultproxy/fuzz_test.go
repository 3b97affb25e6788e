package faultproxy

import (
	"bytes"
	"io"
	"testing"
)

// FuzzScan feeds any bytes, cut at any places: the scanner never panics, takes
// no more than its limit for one value, and finds the same ends and the same error as
// in the whole. A value that it found is a value by itself, too.
func FuzzScan(f *testing.F) {
	for _, data := range []string{
		"+OK\r\n", "*1\r\n$4\r\nPING\r\n", "%1\r\n+a\r\n|1\r\n+b\r\n:1\r\n_\r\n>1\r\n#t\r\n", "$-1\r\n*-1\r\n*0\r\n",
		"$3\r\nab", "*2\r\n*2\r\n:1\r\n,1\r\n!3\r\nERR\r\n", "PING\r\n\n*1\r\n+x\r\n", "$99999999999\r\n", "*66\r\n$198\r\n",
	} {
		f.Add([]byte(data), []byte{1, 2, 0, 3}, false)
		f.Add([]byte(data), []byte{1}, true)
	}
	f.Fuzz(func(t *testing.T, data, steps []byte, requests bool) {
		var cuts []int
		for at, i := 0, 0; len(steps) > 0 && at < len(data); i++ {
			cuts = append(cuts, at)
			at += 1 + int(steps[i%len(steps)])
		}
		whole, err := ends(data, requests)
		cut, cutErr := ends(data, requests, cuts...)
		if !equal(whole, cut) || (err == nil) != (cutErr == nil) || err != nil && err.Error() != cutErr.Error() {
			t.Fatalf("%q: %v, %v; cut at %v: %v, %v", data, whole, err, cuts, cut, cutErr)
		}
		from := 0
		for i, end := range whole {
			if end-from > testLimit {
				t.Fatalf("%q: %d bytes were taken for one value", data, end-from)
			}
			if err != nil && i == len(whole)-1 {
				break // that is where the error is
			}
			value := data[from:end]
			if again, err := ends(value, requests); err != nil || !equal(again, []int{len(value)}) {
				t.Fatalf("%q is no value by itself: %v, %v", value, again, err)
			}
			if requests {
				words(value)
			}
			from = end
		}
		readAll(t, data, requests)
	})
}

func equal(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// readAll reads data as a connection would: no message beyond the limit, no byte
// lost, none made up.
func readAll(t *testing.T, data []byte, requests bool) {
	r := newReader(bytes.NewReader(data), requests)
	r.scan.limit = testLimit
	for rest := data; ; {
		m, err := r.next()
		if err != nil {
			if err == io.EOF && len(rest) > 0 {
				t.Fatalf("%q: %q is missing", data, rest)
			}
			return
		}
		if len(m) > testLimit || !bytes.HasPrefix(rest, m) {
			t.Fatalf("%q: %q was read where %q stands", data, m, rest)
		}
		rest = rest[len(m):]
	}
}

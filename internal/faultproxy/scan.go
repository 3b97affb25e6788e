package faultproxy

import (
	"bytes"
	"fmt"
	"strconv"
)

// Bounds of what a scanner takes for a message.
const (
	// MaxMessage is how many bytes one request or reply may have.
	MaxMessage = 32 << 20

	maxLine  = 64 << 10 // of a header, a simple string or an inline command, as in Redis
	maxDepth = 128      // of aggregates in each other
)

// scanner finds where RESP values end. Bytes are fed to it as they come, in
// pieces of any size, and it says the same however they were cut. It never
// looks back, and keeps no more than one line.
type scanner struct {
	requests bool // requests are arrays of bulk strings, or one line without a type
	limit    int  // bytes that one value may have

	size int    // bytes of the value so far
	line []byte // the line that is being read, when no bulk string is
	body int    // bytes of a bulk string to come, its CRLF with it
	open []int  // values to come of each aggregate that is open, the innermost last
	err  error  // what is wrong with the stream; for good
}

// scan takes the bytes of p up to the end of the value. It returns how many, and
// whether the value is whole; if it is not, all of p was taken. After an error
// the stream makes no sense any more.
func (s *scanner) scan(p []byte) (n int, whole bool, err error) {
	for n < len(p) && s.err == nil {
		room := s.limit - s.size
		if room == 0 {
			s.err = fmt.Errorf("a message has more than %d bytes", s.limit)
			break
		}
		k, ended := s.step(p[n:min(len(p), n+room)])
		n, s.size = n+k, s.size+k
		if ended && s.err == nil && s.complete() {
			s.size = 0
			return n, true, nil
		}
	}
	return n, false, s.err
}

// step takes bytes of one bulk string or one line, at least one byte, and reports whether a
// value ended with them that has no values in it to come.
func (s *scanner) step(p []byte) (n int, ended bool) {
	switch {
	case s.body > 2:
		n = min(len(p), s.body-2)
		s.body -= n
		return n, false
	case s.body > 0:
		if p[0] != "\n\r"[s.body-1] {
			s.err = fmt.Errorf("a bulk string ends in %q, and not in CRLF", p[:1])
		}
		s.body--
		return 1, s.body == 0
	}
	n = min(len(p), maxLine-len(s.line))
	end := bytes.IndexByte(p[:n], '\n')
	if end < 0 {
		s.line = append(s.line, p[:n]...)
		if len(s.line) == maxLine {
			s.err = fmt.Errorf("a line has no end within %d bytes: it begins with %.20q", maxLine, s.line)
		}
		return n, false
	}
	s.line = append(s.line, p[:end]...)
	ended = s.header(s.line)
	s.line = s.line[:0]
	return end + 1, ended
}

// header reads a line, without its LF, and reports whether a value ended with it.
func (s *scanner) header(line []byte) bool {
	if s.requests && len(s.open) == 0 && (len(line) == 0 || line[0] != '*') {
		return true // an inline command; Redis takes an LF alone as its end
	}
	if len(line) < 2 || line[len(line)-1] != '\r' {
		s.err = fmt.Errorf("the line %.20q is no RESP", line)
		return false
	}
	kind, rest := line[0], line[1:len(line)-1]
	if s.requests && len(s.open) > 0 && (kind != '$' || string(rest) == "-1") {
		s.err = fmt.Errorf("a request holds %.20q, and not only bulk strings", line)
		return false
	}
	switch kind {
	case '+', '-', ':', '_', ',', '#', '(':
		return true
	case '$', '!', '=':
		return s.bulk(kind, rest)
	case '*', '~', '>', '%', '|':
		return s.aggregate(kind, rest)
	}
	s.err = fmt.Errorf("the line %.20q is of no RESP type", line)
	return false
}

// bulk begins a string whose size stands in its header.
func (s *scanner) bulk(kind byte, rest []byte) bool {
	if kind == '$' && string(rest) == "-1" {
		return true // null, in RESP2
	}
	n := s.number(rest)
	if n > s.limit-2 {
		s.err = fmt.Errorf("a bulk string has %d bytes, and a message not more than %d", n, s.limit)
	}
	s.body = n + 2
	return false
}

// aggregate begins a value with values in it, and reports whether it has none.
func (s *scanner) aggregate(kind byte, rest []byte) bool {
	if kind == '*' && string(rest) == "-1" {
		return true // null, in RESP2
	}
	n := s.number(rest)
	switch kind {
	case '%':
		n *= 2
	case '|':
		n = 2*n + 1 // an attribute stands before the value that it belongs to
	case '>':
		if len(s.open) > 0 {
			s.err = fmt.Errorf("a push stands within a value")
		}
	}
	const least = 3 // bytes of a value
	switch {
	case n > s.limit/least:
		s.err = fmt.Errorf("a value has %d values in it, and a message not more than %d bytes", n, s.limit)
	case len(s.open) == maxDepth:
		s.err = fmt.Errorf("values stand in each other %d deep", maxDepth)
	case n > 0:
		s.open = append(s.open, n)
	}
	return n == 0
}

// number reads a count. No count of a message is beyond its limit, so none
// overflows.
func (s *scanner) number(digits []byte) int {
	n, err := strconv.ParseUint(string(digits), 10, 31)
	if err != nil {
		s.err = fmt.Errorf("%.20q is no count", digits)
		return 0
	}
	return int(n)
}

// complete counts a value that has ended, and reports whether all those around
// it have ended with it.
func (s *scanner) complete() bool {
	for len(s.open) > 0 {
		last := len(s.open) - 1
		s.open[last]--
		if s.open[last] > 0 {
			return false
		}
		s.open = s.open[:last]
	}
	return true
}

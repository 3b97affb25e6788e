package faultproxy

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
)

// errMalformed: the stream is no RESP, or a message is too large.
var errMalformed = errors.New("malformed")

// reader cuts a stream into messages.
type reader struct {
	from io.Reader
	scan scanner
	buf  [16 << 10]byte
	rest []byte // of buf: read, and not taken yet
}

func newReader(from io.Reader, requests bool) *reader {
	return &reader{from: from, scan: scanner{requests: requests, limit: MaxMessage}}
}

// next returns the next message as it stands on the wire. The error is that of
// the stream, io.ErrUnexpectedEOF when it ends within a message, or wraps
// errMalformed.
func (r *reader) next() ([]byte, error) {
	var message []byte
	for {
		n, whole, err := r.scan.scan(r.rest)
		message = append(message, r.rest[:n]...)
		r.rest = r.rest[n:]
		if err != nil {
			return nil, errors.Join(errMalformed, err)
		}
		if whole {
			return message, nil
		}
		n, err = r.from.Read(r.buf[:])
		r.rest = r.buf[:n]
		switch {
		case n > 0:
		case err == io.EOF && len(message) > 0:
			return nil, io.ErrUnexpectedEOF
		case err != nil:
			return nil, err
		}
	}
}

// words are the words of a whole request. Quotes of an inline command mean
// nothing here.
func words(request []byte) []string {
	if request[0] != '*' {
		return strings.Fields(string(request))
	}
	var list []string
	_, rest, _ := bytes.Cut(request, []byte("\r\n"))
	for len(rest) > 0 {
		size, body, _ := bytes.Cut(rest[1:], []byte("\r\n"))
		n, _ := strconv.Atoi(string(size))
		list, rest = append(list, string(body[:n])), body[n+2:]
	}
	return list
}

// isPush reports whether a message of the server answers no request.
func isPush(message []byte) bool { return message[0] == '>' }

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"
)

const maxBody = 64 << 10 // bytes

// readBody decodes a request's body: one JSON object with no other fields than those of T.
func readBody[T any](w http.ResponseWriter, r *http.Request) (body T, err error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return body, faultf(http.StatusUnsupportedMediaType, "Content-Type is %q: send application/json", r.Header.Get("Content-Type"))
	}
	in := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	in.DisallowUnknownFields()
	if err := in.Decode(&body); err != nil {
		return body, bodyFault(err)
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return body, faultf(http.StatusBadRequest, "the body goes on after its JSON object: send one object")
	}
	return body, nil
}

func bodyFault(err error) error {
	var (
		tooLong *http.MaxBytesError
		syntax  *json.SyntaxError
		kind    *json.UnmarshalTypeError
	)
	switch {
	case errors.As(err, &tooLong):
		return faultf(http.StatusRequestEntityTooLarge, "the body has more than %d bytes: send less", tooLong.Limit)
	case errors.As(err, &syntax):
		return faultf(http.StatusBadRequest, "the body is no JSON at byte %d: %v", syntax.Offset, err)
	case errors.As(err, &kind) && kind.Field == "":
		return faultf(http.StatusBadRequest, "the body is a JSON %s: send an object", kind.Value)
	case errors.As(err, &kind):
		return faultf(http.StatusBadRequest, "%s is a JSON %s: give %s", kind.Field, kind.Value, wanted(kind.Type.Kind()))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return faultf(http.StatusBadRequest, "the body is empty or ends early: send a JSON object")
	}
	// An unknown field, which has no type of its own in encoding/json; or the connection broke.
	return faultf(http.StatusBadRequest, "the body cannot be taken: %s: correct it", strings.TrimPrefix(err.Error(), "json: "))
}

func wanted(k reflect.Kind) string {
	switch k {
	case reflect.Int64:
		return "an integer of at most 19 digits"
	case reflect.Slice:
		return "an array"
	case reflect.Struct:
		return "an object"
	}
	return "a string"
}

// faults collects what is wrong with an input, so that its sender hears of all at once.
type faults []string

func (f *faults) add(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

const maxID = 256 // bytes, of whatever kind of id

func (f *faults) id(field, id string) {
	switch {
	case id == "":
		f.add("%s is empty or missing: give 1 to %d bytes", field, maxID)
	case len(id) > maxID:
		f.add("%s has %d bytes: give 1 to %d", field, len(id), maxID)
	case strings.ContainsRune(id, utf8.RuneError) || strings.ContainsRune(id, 0):
		// encoding/json puts U+FFFD in the place of what is no UTF-8, so two ids would become one.
		f.add("%s is %q: give UTF-8 without a NUL and without U+FFFD", field, id)
	case id == "." || id == "..":
		f.add("%s is %q: give one that a URL can have as a part of its path", field, id)
	}
}

// number checks a number that must be given; nil is none.
func (f *faults) number(field string, n *int64, lo, hi int64) int64 {
	if n == nil {
		f.add("%s is missing: give %d to %d", field, lo, hi)
		return 0
	}
	if *n < lo || *n > hi {
		f.add("%s is %d: give %d to %d", field, *n, lo, hi)
	}
	return *n
}

// instant checks an instant that must be given.
func (f *faults) instant(field, text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		f.add("%s is %q: give an instant as 2026-01-02T15:04:05Z", field, text)
	}
	return t
}

func (f faults) err() error {
	if len(f) == 0 {
		return nil
	}
	return &fault{http.StatusUnprocessableEntity, strings.Join(f, "; ")}
}

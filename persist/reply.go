package persist

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// reply reads what a script returns, front to back: a flat array, or the words of
// a flush. The first fault sticks; done reports it.
type reply struct {
	op             string
	rest           []any
	words          words
	err            error
	sent, received time.Time
	flush          *answer // that words are a part of
}

func newReply(s *script, a answer) (reply, error) {
	rp := reply{op: s.name, sent: a.sent, received: a.received}
	switch v := a.value.(type) {
	case []any:
		rp.rest = v
	case int64: // of scripts that return one number
		rp.rest = []any{v}
	default:
		rp.fail("a %T", a.value)
	}
	return rp, rp.err
}

// fail notes the first fault.
func (r *reply) fail(format string, args ...any) {
	if r.err == nil {
		r.err = &callError{op: r.op, class: ErrFatal, last: fmt.Errorf("%w: "+format, append([]any{errBadReply}, args...)...)}
	}
	r.rest, r.words = nil, ""
}

// word takes the next of words.
func (r *reply) word() string {
	word, rest, _ := strings.Cut(string(r.words), " ")
	r.words = words(rest)
	return word
}

func (r *reply) next() any {
	if r.words != "" {
		return r.word()
	}
	if len(r.rest) == 0 {
		r.fail("it is too short")
		return nil
	}
	v := r.rest[0]
	r.rest = r.rest[1:]
	return v
}

// string reads a value that has to be a string.
func (r *reply) string() string {
	if r.words != "" {
		return r.word()
	}
	v := r.next()
	s, ok := v.(string)
	if !ok {
		r.fail("%v (%T) is no string", v, v)
	}
	return s
}

// int reads a whole number, as Redis integer or as digits.
func (r *reply) int() int64 {
	if r.words != "" {
		return r.number(r.word())
	}
	switch v := r.next().(type) {
	case int64:
		return v
	case string:
		return r.number(v)
	default:
		r.fail("%v (%T) is no number", v, v)
		return 0
	}
}

// number reads digits.
func (r *reply) number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		r.fail("%q is no whole number", text)
	}
	return n
}

// sample reads TIME's two values.
func (r *reply) sample() Sample {
	seconds, us := r.int(), r.int()
	return Sample{Sent: r.sent, Received: r.received, StoreUS: seconds*1_000_000 + us}
}

// dues reads id and due time until the end.
func (r *reply) dues() []Due {
	dues := make([]Due, 0, len(r.rest)/2)
	for len(r.rest) > 0 {
		dues = append(dues, Due{ID: r.string(), DueMS: r.int()})
	}
	return dues
}

// scored reads a table of ids and their scores.
func (r *reply) scored() []Due {
	v := r.next()
	list, ok := v.([]any)
	if !ok || len(list)%2 != 0 {
		r.fail("%v (%T) is no table of pairs", v, v)
		return nil
	}
	dues := make([]Due, 0, len(list)/2)
	for i := 0; i < len(list); i += 2 {
		id, ok1 := list[i].(string)
		text, ok2 := list[i+1].(string)
		score, err := strconv.ParseFloat(text, 64)
		if !ok1 || !ok2 || err != nil || math.IsNaN(score) {
			r.fail("%v, %v are no id and score", list[i], list[i+1])
			return nil
		}
		dues = append(dues, Due{ID: id, DueMS: scoreMS(score)})
	}
	return dues
}

// scoreMS reads a score as ms, as to_ms in lua/scores.lua does: ours are whole and in
// range; what somebody wrote by hand is rounded up and brought into range.
func scoreMS(score float64) int64 {
	return int64(min(max(math.Ceil(score), 0), MaxDueMS))
}

// done returns the first fault, or one for what nobody read.
func (r *reply) done() error {
	if r.words != "" {
		r.fail("%q is too much", r.words)
	}
	if len(r.rest) > 0 {
		r.fail("%d values are too many", len(r.rest))
	}
	return r.err
}

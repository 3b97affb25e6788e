package persist

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// outage is a presence whose events are read as words: "away back".
type outage struct {
	presence
	log bytes.Buffer
}

func newOutage() *outage {
	o := new(outage)
	o.presence.log = slog.New(slog.NewTextHandler(&o.log, nil))
	return o
}

func (o *outage) call(op string) *caller { return &caller{presence: &o.presence, op: op} }

func (o *outage) fails(c *caller, start time.Time, cl class) {
	c.failed(context.Background(), start, cl, io.EOF)
}

func (o *outage) events() string {
	var words []string
	for line := range strings.Lines(o.log.String()) {
		_, rest, _ := strings.Cut(line, "msg=redis_")
		word, _, _ := strings.Cut(rest, " ")
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func TestAnOutageEndsWhenNoCallWaitsAnyMore(t *testing.T) {
	t.Parallel()
	o := newOutage()
	a, b, c := o.call("claim"), o.call("claim"), o.call("ack")
	for _, call := range []*caller{a, b, c} {
		o.fails(call, time.Now(), retryable)
		o.fails(call, time.Now(), retryable)
	}
	a.answered(t.Context(), time.Now())
	require.Equal(t, "away", o.events())
	b.gaveUp()
	require.Equal(t, "away", o.events(), "to give up is no sign of life")
	c.answered(t.Context(), time.Now())
	require.Equal(t, "away back", o.events())
}

func TestAnOutageWithoutACallThatWaitsEndsWithTheNextAnswer(t *testing.T) {
	t.Parallel()
	o := newOutage()
	before := time.Now()
	a := o.call("claim")
	o.fails(a, before, retryable)
	a.gaveUp()
	o.call("window").answered(t.Context(), time.Now())
	require.Equal(t, "away", o.events(), "reads did not fail")
	o.call("claim").answered(t.Context(), before)
	require.Equal(t, "away", o.events(), "it was sent before the failure")
	o.call("claim").answered(t.Context(), time.Now())
	require.Equal(t, "away back", o.events())
}

func TestALateFailureBeginsNoNewOutage(t *testing.T) {
	t.Parallel()
	o := newOutage()
	before := time.Now()
	a := o.call("claim")
	o.fails(a, before, retryable)
	a.answered(t.Context(), time.Now())
	late := o.call("claim")
	o.fails(late, before, retryable)
	require.Equal(t, "away back", o.events())
	o.fails(late, time.Now(), retryable)
	require.Equal(t, "away back away", o.events())
}

func TestAnOutageOfAnotherClassIsLoggedToo(t *testing.T) {
	t.Parallel()
	o := newOutage()
	a := o.call("claim")
	o.fails(a, time.Now(), retryable)
	o.fails(a, time.Now(), degraded)
	o.fails(a, time.Now(), degraded)
	require.Equal(t, "away away", o.events())
}

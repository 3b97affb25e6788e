package persist

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// flush is a group of writes on their way.
type flush struct {
	writes []*write
	ctx    context.Context // ends when nobody waits for an answer any more
	cancel context.CancelFunc
}

func newFlushLocked(writes []*write) *flush {
	f := &flush{writes: writes}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	for _, w := range writes {
		w.flush = f
	}
	f.cancelIfGoneLocked()
	return f
}

// cancelIfGoneLocked ends ctx when nobody waits for an answer any more.
func (f *flush) cancelIfGoneLocked() {
	for _, w := range f.writes {
		if !w.gone {
			return
		}
	}
	f.cancel()
}

// commit sends f until it is answered, and passes on the answers.
//
// An error that says that nothing was executed goes to the callers, who come
// again if they like: what came meanwhile need not wait for them. A Redis that
// is out of memory refuses a flush for the new work in it. The rest of it, which
// makes room, is sent without.
func (l *lane) commit(f *flush) {
	a := l.transmit(f.ctx, f.writes)
	if a.err != nil && !a.ran && classify(a.err, l.r.isCluster()) == degraded {
		if rest := l.split(f, a); rest != nil {
			l.deliver(rest.writes, l.transmit(rest.ctx, rest.writes))
			rest.cancel()
			return
		}
	}
	l.deliver(f.writes, a)
}

// split answers the new work in f, which is refused, and returns a flush of the
// rest; nil if f has not both.
func (l *lane) split(f *flush, refusal answer) *flush {
	var rest, refused []*write
	for _, w := range f.writes {
		if w.newWork {
			refused = append(refused, w)
		} else {
			rest = append(rest, w)
		}
	}
	if len(rest) == 0 || len(refused) == 0 {
		return nil
	}
	l.deliver(refused, refusal)
	l.mu.Lock()
	defer l.mu.Unlock()
	return newFlushLocked(rest)
}

// deliver passes on the answer to writes.
func (l *lane) deliver(writes []*write, a answer) {
	text, _ := a.value.(string)
	if a.err == nil && !a.cut {
		want := 0
		for _, w := range writes {
			want += w.ids * w.values
		}
		got := 0
		if text != "" {
			got = strings.Count(text, " ") + 1
		}
		if got != want {
			a = answer{err: fmt.Errorf("%w: %d values, want %d", errBadReply, got, want), ran: true}
		}
	}
	for _, w := range writes {
		part := a
		if a.err == nil && !a.cut {
			var values string
			values, text = cutWords(text, w.ids*w.values)
			part.value = words(values)
		}
		w.answered <- part
	}
}

// words are numbers with a space between them.
type words string

// cutWords cuts the first n words off text.
func cutWords(text string, n int) (head, rest string) {
	if n == 0 {
		return "", text
	}
	end := 0
	for ; n > 0 && end < len(text); n-- {
		i := strings.IndexByte(text[end:], ' ')
		if i < 0 {
			return text, ""
		}
		end += i + 1
	}
	return strings.TrimSuffix(text[:end], " "), text[end:]
}

// transmit sends one flush. As long as it is not known whether it was executed,
// the same one is sent again, until it is answered or ctx ends.
func (l *lane) transmit(ctx context.Context, writes []*write) answer {
	var args []any
	newWork := false
	for _, w := range writes {
		args = append(append(args, w.code, w.ids), w.args...)
		newWork = newWork || w.newWork
	}
	return l.transmitArgs(ctx, args, newWork)
}

func (l *lane) transmitArgs(ctx context.Context, args []any, newWork bool) answer {
	l.number++
	number := l.number
	args = append([]any{l.session, number}, args...)
	watch := caller{presence: &l.r.away, op: l.op}
	defer func() { watch.gaveUp() }() // does nothing once it was answered
	first, ran := time.Now(), false
	for tries := 1; ; tries++ {
		attempted := time.Now()
		a := l.r.try(ctx, func() answer { return l.r.eval(ctx, flushScript, args) })
		a.first = first
		if a.ran {
			ran, l.owed, l.doubted = true, true, true
		}
		a.ran = ran
		if a.err == nil && !a.cut {
			l.owed = false
			watch.answered(ctx, attempted)
			return readFlush(a)
		}
		c := classify(a.err, l.r.isCluster())
		if a.cut || !ran || c == fatal {
			return a
		}
		if ctx.Err() == nil && !isLocal(a.err) { // else a.err says no more than that ctx has ended
			watch.failed(ctx, attempted, c, a.err)
		}
		if ctx.Err() == nil && c == degraded && newWork {
			if found, ok := l.ask(ctx, number, a); ok {
				return found
			}
		}
		if sleep(ctx, l.r.backoff.wait(tries)); ctx.Err() != nil {
			return answer{cut: true, ran: true}
		}
	}
}

// readFlush takes an answer of lua/flush.lua apart.
func readFlush(a answer) answer {
	rp, err := newReply(flushScript, a)
	if err != nil {
		return answer{err: err, ran: true}
	}
	clock, text := rp.sample(), rp.string()
	if err := rp.done(); err != nil {
		return answer{err: err, ran: true}
	}
	return read(answer{clock: clock, sent: a.sent, received: a.received, first: a.first}, text)
}

// read takes the answer of a flush, as sessions has it, into a.
func read(a answer, text string) answer {
	judged, values := cutWords(text, 1)
	ms, err := strconv.ParseInt(judged, 10, 64)
	if err != nil {
		return answer{err: fmt.Errorf("%w: %q is no time", errBadReply, judged), ran: true}
	}
	a.value, a.judgedMS = values, ms
	return a
}

package persist

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// flush is a group of writes on their way.
type flush struct {
	lane   *lane
	writes []*write
	ctx    context.Context // ends when nobody waits for an answer any more
	cancel context.CancelFunc
	first  atomic.Int32 // how its first attempt stands
}

// How the first attempt of a flush stands.
const (
	notSent   = iota // or it is over
	sent             // the lane's goroutine waits for the answer
	abandoned        // another goroutine has taken the lane over
)

func (l *lane) newFlushLocked(writes []*write) *flush {
	f := &flush{lane: l, writes: writes}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	for _, w := range writes {
		w.flush = f
	}
	f.cancelIfGoneLocked()
	return f
}

// cancelIfGoneLocked ends ctx when nobody waits for an answer any more. If the lane's
// goroutine is still waiting for the first one, in a client that does not notice,
// another takes its place.
func (f *flush) cancelIfGoneLocked() {
	for _, w := range f.writes {
		if !w.gone {
			return
		}
	}
	f.cancel()
	if f.first.CompareAndSwap(sent, abandoned) {
		go f.lane.takeOver()
	}
}

// takeOver goes on where the goroutine was that waits for an answer which nobody
// wants any more.
func (l *lane) takeOver() {
	l.owed, l.doubted = true, true
	l.send()
}

// sendFirst is the first attempt. It is made by the lane's own goroutine, since a
// goroutine more would cost a caller that is alone as much as half the
// round trip. ok is false when another goroutine has taken the lane over.
func (f *flush) sendFirst(attempt func() answer) (a answer, ok bool) {
	f.first.Store(sent)
	if f.ctx.Err() != nil {
		return answer{cut: true}, f.first.CompareAndSwap(sent, notSent)
	}
	a = attempt()
	return a, f.first.CompareAndSwap(sent, notSent)
}

// commit sends f until it is answered, and passes on the answers. It is false when
// another goroutine has taken the lane over.
//
// An error that says that nothing was executed goes to the callers, who come
// again if they like: what came meanwhile need not wait for them. A Redis that
// is out of memory refuses a flush for the new work in it. The rest of it, which
// makes room, is sent without.
func (l *lane) commit(f *flush) bool {
	a, ok := l.transmit(f)
	if !ok {
		return false
	}
	if a.err != nil && !a.ran && classify(a.err, l.shard.cluster) == degraded {
		if rest := l.split(f, a); rest != nil {
			defer rest.cancel()
			if a, ok = l.transmit(rest); ok {
				l.deliver(rest.writes, a)
			}
			return ok
		}
	}
	l.deliver(f.writes, a)
	return true
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
	return l.newFlushLocked(rest)
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
	a.value = words("")
	for _, w := range writes {
		part := &a // of all that get no values
		if a.err == nil && !a.cut && w.values > 0 {
			var values string
			values, text = cutWords(text, w.ids*w.values)
			own := a
			own.value = words(values)
			part = &own
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
// the same one is sent again, until it is answered or nobody waits for it.
func (l *lane) transmit(f *flush) (a answer, ok bool) {
	var args []any
	newWork := false
	for i := 0; i < len(f.writes); {
		w, ids := f.writes[i], 0
		at := len(args) + 1
		args = append(append(args, w.code, 0, len(w.once), len(w.args)/w.ids), w.once...)
		for ; i < len(f.writes) && f.writes[i].joins(w); i++ {
			ids += f.writes[i].ids
			args = append(args, f.writes[i].args...)
		}
		args[at] = ids
		newWork = newWork || w.newWork
	}
	return l.transmitArgs(f.ctx, args, newWork, l.durable, f.sendFirst)
}

// joins tells whether w may stand in one group with v.
func (w *write) joins(v *write) bool { return w.code == v.code && slices.Equal(w.once, v.once) }

// transmitArgs is transmit for what is not a write too. durable: it is not answered before
// it is where s.wait wants it. first makes the first attempt.
func (l *lane) transmitArgs(ctx context.Context, args []any, newWork, durable bool, first func(attempt func() answer) (answer, bool)) (a answer, ok bool) {
	s := l.shard
	l.number++
	number := l.number
	args = append([]any{l.session, number}, args...)
	watch := caller{presence: &s.away, op: l.op}
	defer func() { watch.gaveUp() }() // does nothing once it was answered
	begun, ran := time.Now(), false
	for tries := 1; ; tries++ {
		attempted := time.Now()
		attempt := func() answer {
			if durable {
				return s.evalDurable(ctx, flushScript, args)
			}
			return s.eval(ctx, flushScript, args)
		}
		if tries > 1 {
			a = s.try(ctx, attempt)
		} else if a, ok = first(attempt); !ok {
			return a, false
		}
		a.first = begun
		if a.ran {
			ran, l.owed, l.doubted = true, true, true
		}
		a.ran = ran
		if a.err == nil && !a.cut {
			l.owed = false
			watch.answered(ctx, attempted)
			return l.readFlush(a, number), true
		}
		c := classify(a.err, s.cluster)
		if a.cut || !ran || c == fatal {
			return a, true
		}
		if ctx.Err() == nil && !isLocal(a.err) { // else a.err says no more than that ctx has ended
			watch.failed(ctx, attempted, c, a.err)
		}
		if ctx.Err() == nil && c == degraded && newWork {
			if found, ok := l.ask(ctx, number, a); ok {
				return found, true
			}
		}
		if sleep(ctx, s.backoff.wait(tries)); ctx.Err() != nil {
			return answer{cut: true, ran: true}, true
		}
	}
}

// readFlush takes an answer of lua/flush.lua apart. If Redis does not remember the
// last flush that it has answered, it has lost it, and what else nobody knows.
func (l *lane) readFlush(a answer, number uint64) answer {
	rp, err := newReply(flushScript, a)
	if err != nil {
		return answer{err: err, ran: true}
	}
	clock, had, text := rp.sample(), rp.int(), rp.string()
	if err := rp.done(); err != nil {
		return answer{err: err, ran: true}
	}
	if uint64(had) < l.known {
		l.shard.lost.Store(true)
	}
	l.known = number
	a.clock, a.ran = clock, false
	return read(a, text)
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

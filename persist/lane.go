package persist

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// maxWaiting bounds the ids that wait for a flush: who comes with more waits
	// for room.
	maxWaiting = 16 * MaxBatch

	// fenceTimeout bounds the flush that nobody waits for.
	fenceTimeout = time.Second
)

// lane is one writer. It gathers the writes of many callers and sends them in
// flushes, one after the other: while one is on its way the next gathers, and
// nothing waits on a timer. (Group commit: DeWitt et al., "Implementation
// Techniques for Main Memory Database Systems", SIGMOD 1984.) See "Sessions" in
// doc.go for why one flush at a time, and why they are numbered.
//
// A goroutine sends the flushes. It is started by the write that finds none, and
// ends when none is left.
type lane struct {
	r  *Redis
	op string // of its flushes, in log events

	// Only the goroutine touches these, and finish while there is none.
	session string
	number  uint64 // of the last flush
	owed    bool   // it is not known whether a flush was executed, and none was answered since
	doubted bool   // some flush was sent twice, or not answered: a copy may come late

	mu struct {
		sync.Mutex
		waiting []*write      // in the order they came
		ids     int           // in waiting
		sending bool          // the goroutine is there
		room    chan struct{} // closed when a flush takes from waiting; nil: nobody waits for room
		idle    chan struct{} // closed when the goroutine ends; nil: nobody waits for it
		fencing func()        // ends the fence that is under way; nil: none is
	}
}

// write is what one call, or a chunk of it, writes: at most MaxBatch ids.
type write struct {
	op       string // as in errors and log events
	code     string // in lua/flush.lua
	ids      int
	args     []any // what stands behind code and number of ids there
	values   int   // that the answer has for each id
	newWork  bool  // Redis refuses it when it is out of memory
	answered chan answer

	// Guarded by lane.mu.
	flush *flush // that took it, nil while it waits
	gone  bool   // its caller has gone
}

// flush is a group of writes on their way.
type flush struct {
	writes []*write
	ctx    context.Context // ends when nobody waits for an answer any more
	cancel context.CancelFunc
}

func newLane(r *Redis, op string) *lane { return &lane{r: r, op: op, session: rand.Text()} }

// do sends w with a flush and returns its answer, or when ctx ends.
func (l *lane) do(ctx context.Context, w *write) answer {
	w.answered = make(chan answer, 1)
	if !l.enter(ctx, w) {
		return answer{cut: true}
	}
	select {
	case a := <-w.answered:
		return a
	case <-ctx.Done():
	}
	sent := l.leave(w)
	select {
	case a := <-w.answered: // both at once: an answer is worth more
		return a
	default:
		return answer{cut: true, ran: sent}
	}
}

// enter adds w to what waits, as soon as there is room; false if ctx ended first.
func (l *lane) enter(ctx context.Context, w *write) bool {
	for {
		room := l.tryEnter(w)
		if room == nil {
			return true
		}
		select {
		case <-room:
		case <-ctx.Done():
			return false
		}
	}
}

// tryEnter adds w, or returns what is closed when there may be room.
func (l *lane) tryEnter(w *write) (room <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.ids > 0 && l.mu.ids+w.ids > maxWaiting {
		if l.mu.room == nil {
			l.mu.room = make(chan struct{})
		}
		return l.mu.room
	}
	l.mu.waiting = append(l.mu.waiting, w)
	l.mu.ids += w.ids
	if l.mu.fencing != nil {
		l.mu.fencing() // w does as well
	}
	if !l.mu.sending {
		l.mu.sending = true
		go l.send()
	}
	return nil
}

// leave is called when the caller of w goes. It tells whether w may have been
// sent: if not it never will be.
func (l *lane) leave(w *write) (sent bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.flush != nil {
		w.gone = true
		w.flush.cancelIfGoneLocked()
		return true
	}
	for i, v := range l.mu.waiting {
		if v == w {
			l.mu.waiting = append(l.mu.waiting[:i], l.mu.waiting[i+1:]...)
			l.takenLocked(w.ids)
		}
	}
	return false
}

func (l *lane) takenLocked(ids int) {
	l.mu.ids -= ids
	if l.mu.room != nil {
		close(l.mu.room)
		l.mu.room = nil
	}
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

// send sends flushes until nothing waits.
func (l *lane) send() {
	for {
		f := l.take()
		switch {
		case f != nil:
			l.commit(f)
			f.cancel()
		case l.owed:
			l.fence()
		case l.end():
			return
		}
	}
}

// end ends the goroutine, unless something waits.
func (l *lane) end() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.mu.waiting) > 0 {
		return false
	}
	l.mu.sending = false
	l.mu.waiting = nil
	if l.mu.idle != nil {
		close(l.mu.idle)
		l.mu.idle = nil
	}
	return true
}

// take makes a flush of what came first, nil when nothing waits.
func (l *lane) take() *flush {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, ids := 0, 0
	for n < len(l.mu.waiting) && (n == 0 || ids+l.mu.waiting[n].ids <= MaxBatch) {
		ids += l.mu.waiting[n].ids
		n++
	}
	if n == 0 {
		return nil
	}
	f := newFlushLocked(append([]*write(nil), l.mu.waiting[:n]...))
	clear(l.mu.waiting[:n])
	l.mu.waiting = l.mu.waiting[n:]
	l.takenLocked(ids)
	return f
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
		switch {
		case a.cut || !ran || c == fatal:
			watch.gaveUp()
			return a
		case ctx.Err() != nil: // and a.err says no more than that
			watch.gaveUp()
			return answer{cut: true, ran: true}
		case !isLocal(a.err):
			watch.failed(ctx, attempted, c, a.err)
		}
		if c == degraded && newWork {
			if found, ok := l.ask(ctx, number, a); ok {
				watch.gaveUp()
				return found
			}
		}
		sleep(ctx, l.r.backoff.wait(tries))
		if ctx.Err() != nil {
			watch.gaveUp()
			return answer{cut: true, ran: true}
		}
	}
}

// ask finds out whether a flush was executed that Redis refuses now: it is asked,
// with the next number, for what it had before. So what makes room need not wait
// until there is room. ok: a is the answer to the flush.
func (l *lane) ask(ctx context.Context, number uint64, refusal answer) (a answer, ok bool) {
	a = l.transmitArgs(ctx, []any{"?"}, false)
	text, answered := a.value.(string)
	if !answered {
		return a, a.cut
	}
	found, rest := cutWords(text, 1)
	if found != strconv.FormatUint(number, 10) {
		refusal.ran = false // it never was, and will not be
		return refusal, true
	}
	a.first = refusal.first
	return read(a, rest), true
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

// fence makes sure that a flush of which nobody knows whether it was executed is
// not executed from now on: Redis refuses it once it has seen a later number. An
// empty flush is sent until it is answered, for a while: when Redis is away for
// longer, the next write has to do. One that comes meanwhile does it at once.
func (l *lane) fence() {
	ctx, cancel := context.WithTimeout(context.Background(), fenceTimeout)
	defer cancel()
	if !l.setFencing(cancel) {
		return
	}
	for tries := 1; l.owed && ctx.Err() == nil; tries++ {
		if l.transmit(ctx, nil); l.owed {
			sleep(ctx, l.r.backoff.wait(tries))
		}
	}
	l.setFencing(nil)
	if ctx.Err() == context.DeadlineExceeded {
		l.owed = false
	}
}

// setFencing says how to end the fence under way; false if something waits.
func (l *lane) setFencing(cancel func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if cancel != nil && len(l.mu.waiting) > 0 {
		return false
	}
	l.mu.fencing = cancel
	return true
}

// finish waits until nothing is being sent, ends the session and begins another.
// It returns the old one if it can be forgotten: each flush was sent once, and
// answered.
func (l *lane) finish(ctx context.Context) (forget string, err error) {
	for {
		forget, idle := l.tryFinish()
		if idle == nil {
			return forget, nil
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// tryFinish returns what is closed when nothing is being sent any more; nil: the
// session has ended.
func (l *lane) tryFinish() (forget string, idle <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.sending {
		if l.mu.idle == nil {
			l.mu.idle = make(chan struct{})
		}
		return "", l.mu.idle
	}
	if l.number > 0 && !l.doubted {
		forget = l.session
	}
	if l.number > 0 {
		l.session, l.number, l.owed, l.doubted = rand.Text(), 0, false, false
	}
	return forget, nil
}

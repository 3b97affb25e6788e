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
	r       *Redis
	session string

	number uint64 // of the last flush; only the goroutine touches it

	mu struct {
		sync.Mutex
		waiting []*write      // in the order they came
		ids     int           // in waiting
		sending bool          // the goroutine is there
		room    chan struct{} // closed when a flush takes from waiting; nil: nobody waits for room
		idle    chan struct{} // closed when the goroutine ends; nil: nobody waits for it
		doubted bool          // some flush was sent twice, or not answered: a copy may come late
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

	flush *flush // that took it, nil while it waits; guarded by lane.mu
}

// flush is a group of writes on their way.
type flush struct {
	writes []*write
	ctx    context.Context // ends when nobody waits for an answer any more
	cancel context.CancelFunc
	gone   int // writes whose callers have gone; guarded by lane.mu
}

func newLane(r *Redis) *lane { return &lane{r: r, session: rand.Text()} }

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
	if f := w.flush; f != nil {
		if f.gone++; f.gone == len(f.writes) {
			f.cancel()
		}
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

// send sends flushes until nothing waits.
func (l *lane) send() {
	for f := l.take(); f != nil; f = l.take() {
		l.commit(f)
		f.cancel()
	}
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
		l.mu.sending = false
		l.mu.waiting = nil
		if l.mu.idle != nil {
			close(l.mu.idle)
			l.mu.idle = nil
		}
		return nil
	}
	f := &flush{writes: append([]*write(nil), l.mu.waiting[:n]...)}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	for _, w := range f.writes {
		w.flush = f
	}
	clear(l.mu.waiting[:n])
	l.mu.waiting = l.mu.waiting[n:]
	l.takenLocked(ids)
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
		var rest []*write
		for _, w := range f.writes {
			if !w.newWork {
				rest = append(rest, w)
			}
		}
		if n := len(rest); n > 0 && n < len(f.writes) {
			refusal := a
			a = l.transmit(f.ctx, rest)
			for _, w := range f.writes {
				if w.newWork {
					w.answered <- refusal
				}
			}
			l.deliver(rest, a)
			return
		}
	}
	l.deliver(f.writes, a)
}

// deliver passes on the answer to writes.
func (l *lane) deliver(writes []*write, a answer) {
	text, _ := a.value.(string)
	for _, w := range writes {
		part := a
		if a.err == nil && !a.cut {
			var values string
			values, text = cutWords(text, w.ids*w.values)
			part.value = words(values)
		}
		w.answered <- part
	}
	if a.ran {
		l.fence()
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
	l.number++
	args := []any{l.session, l.number}
	for _, w := range writes {
		args = append(append(args, w.code, w.ids), w.args...)
	}
	watch := caller{presence: &l.r.away, op: flushScript.name}
	first, ran := time.Now(), false
	for tries := 1; ; tries++ {
		attempted := time.Now()
		a := l.r.try(ctx, func() answer { return l.r.eval(ctx, flushScript, args) })
		a.first = first
		if a.ran && !ran {
			ran = true
			l.doubt()
		}
		a.ran = ran
		if a.err == nil && !a.cut {
			watch.answered(ctx, attempted)
			return readFlush(a)
		}
		c := classify(a.err, l.r.isCluster())
		if a.cut || !ran || c == fatal {
			watch.gaveUp()
			return a
		}
		watch.failed(ctx, attempted, c, a.err)
		sleep(ctx, l.r.backoff.wait(tries))
		if ctx.Err() != nil {
			watch.gaveUp()
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
	judged, text := cutWords(text, 1)
	ms, err := strconv.ParseInt(judged, 10, 64)
	if err != nil {
		return answer{err: fmt.Errorf("%w: %q is no time", errBadReply, judged), ran: true}
	}
	return answer{value: text, clock: clock, judgedMS: ms, sent: a.sent, received: a.received, first: a.first}
}

// fence makes sure that a flush of which nobody knows whether it was executed is
// not executed from now on: Redis refuses it once it has seen a later number.
// What waits does the same, so nothing is sent then.
func (l *lane) fence() {
	l.mu.Lock()
	idle := len(l.mu.waiting) == 0
	l.mu.Unlock()
	if idle {
		ctx, cancel := context.WithTimeout(context.Background(), fenceTimeout)
		defer cancel()
		l.transmit(ctx, nil)
	}
}

func (l *lane) doubt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.doubted = true
}

// finish waits until nothing is being sent. It tells whether the session can be
// forgotten: each flush was sent once, and answered.
func (l *lane) finish(ctx context.Context) (forget bool, err error) {
	for {
		idle, doubted := l.whenIdle()
		if idle == nil {
			return !doubted, nil
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// whenIdle returns nil when nothing is being sent, else what is closed then.
func (l *lane) whenIdle() (idle <-chan struct{}, doubted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.mu.sending {
		return nil, l.mu.doubted
	}
	if l.mu.idle == nil {
		l.mu.idle = make(chan struct{})
	}
	return l.mu.idle, false
}

//go:build !race

package persist_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/orderwheel/orderwheel/internal/faultproxy"
	"github.com/orderwheel/orderwheel/internal/redistest"
	"github.com/orderwheel/orderwheel/persist"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/require"
)

// Thousands of short random sequences. Several owners work on the same few ids, each with a
// store and a connection of its own, while the clock of the server is stepped in both
// directions. Any call may lose its request or its reply, arrive twice, be
// refused, be given up with its outcome open; and a copy of it may arrive long after
// later calls of others. The model knows what each really did: after every step the answer and
// all that Redis holds have to be the model's.

// Sequences of make test, and of make test-long.
const (
	fewSequences  = 1_000
	manySequences = 10_000
	stepsEach     = 10
	sequenceBeds  = 8 // servers, each with its proxy; sequences of one follow each other
)

// sequenceIDs are few, so that the owners meet.
var sequenceIDs = []string{"a", "b{}", "nul\x00\xff", "-"}

func TestTenThousandSequencesOfOwnersAndFaultsDoWhatTheModelDoes(t *testing.T) {
	t.Parallel()
	n, seed := fewSequences, rand.Uint64()
	if os.Getenv("ORDERWHEEL_LONG") == "1" {
		n = manySequences
	}
	if s := os.Getenv("ORDERWHEEL_SEED"); s != "" {
		var err error
		seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err, "ORDERWHEEL_SEED")
	}
	t.Logf("ORDERWHEEL_SEED=%d", seed)
	for at := range sequenceBeds {
		t.Run(fmt.Sprintf("bed=%d", at), func(t *testing.T) {
			t.Parallel()
			b := newSequenceBed(t)
			for i := at; i < n && !t.Failed(); i += sequenceBeds {
				b.sequence(t, seed, i)
			}
			b.requireEveryFault(t)
		})
	}
}

// sequenceBed is one server, and the connections of each owner.
type sequenceBed struct {
	mini    *miniredis.Miniredis
	proxy   *faultproxy.Proxy
	clients []*redis.Client
	done    map[string]int // faults, by name
}

func newSequenceBed(t *testing.T) *sequenceBed {
	m, client := redistest.MiniServer(t)
	bed{Redis: newStore(t, client), client: client, mini: m}.loadScripts(t)
	b := &sequenceBed{mini: m, proxy: faultproxy.Start(t, m.Addr()), done: map[string]int{}}
	for range 3 {
		c := redis.NewClient(&redis.Options{
			Addr: b.proxy.Addr(), ContextTimeoutEnabled: true,
			// Many connections are made: with as few words as may be.
			Protocol: 2, DisableIdentity: true,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})
		t.Cleanup(func() { _ = c.Close() })
		b.clients = append(b.clients, c)
	}
	return b
}

// requireEveryFault checks that none was forgotten.
func (b *sequenceBed) requireEveryFault(t *testing.T) {
	if os.Getenv("ORDERWHEEL_LONG") != "1" {
		return // too few to be sure of
	}
	for _, f := range sequenceFaults {
		require.Positive(t, b.done[f], f)
	}
}

// sequence is one of them, in a namespace of its own.
type sequence struct {
	*sequenceBed
	walker // its random choices, its model, its clock; not its bed
	ctx    context.Context
	name   string
	owners []*persist.Redis
	late   []lateCopy
	tried  []string
}

// lateCopy is a copy of a call that the proxy holds back.
type lateCopy struct {
	held *faultproxy.Held
	op   sequenceOp
}

// sequenceOp is what one step asks of a store, and of the model.
type sequenceOp struct {
	name  string
	reads bool
	store func(ctx context.Context, s *persist.Redis) (any, error)
	model func() any

	// bare says that it has no session: each copy that arrives is executed.
	bare bool
}

func (b *sequenceBed) sequence(t *testing.T, seed uint64, i int) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // only when something hangs
	defer cancel()
	s := &sequence{sequenceBed: b, ctx: ctx, name: fmt.Sprintf("s%d", i)}
	s.walker = *newWalker(bed{mini: b.mini}, 0)
	s.rnd = rand.New(rand.NewPCG(seed, uint64(i)))
	for _, c := range b.clients {
		store, err := persist.New(c, persist.Options{Namespace: s.name})
		require.NoError(t, err)
		s.owners = append(s.owners, store)
	}
	for range stepsEach {
		s.stepClock()
		s.oneStep(t)
		if len(s.late) > 0 && s.rnd.IntN(3) == 0 {
			s.arrive(t, s.rnd.IntN(len(s.late)))
		}
	}
	for len(s.late) > 0 {
		s.arrive(t, 0)
	}
	s.requireOnePlaceEach(t)
	if i%4 == 0 { // they cost as much as many steps
		s.requireSeenAlike(t)
		s.end(t)
	}
	for _, owner := range s.owners {
		require.NoError(t, owner.Close(s.ctx), "%v", s) // nothing of it is under way any more
	}
	s.mini.FlushAll()
}

// String says what it did so far.
func (s *sequence) String() string {
	return fmt.Sprintf("sequence %s (ORDERWHEEL_SEED is above):\n%q", s.name, s.tried)
}

// stepClock moves it on a little, or by hours, or back.
func (s *sequence) stepClock() {
	switch s.rnd.IntN(12) {
	case 0:
		s.nowMS += 3 * time.Hour.Milliseconds() // every lease is over
	case 1:
		s.nowMS -= s.rnd.Int64N(50)
	default:
		s.nowMS += s.rnd.Int64N(40)
	}
	s.mini.SetTime(time.UnixMilli(s.nowMS).Add(time.Duration(s.rnd.Int64N(1000)) * time.Microsecond))
}

// What may happen to a call.
const (
	noFault       = "nothing"
	lostReply     = "reply lost"
	lostTwice     = "two replies lost"
	lostRequest   = "request lost"
	twice         = "sent twice"
	refusedOnce   = "refused once"
	lateToo       = "sent again, and a copy late"
	givenUpBefore = "given up, never arrived"
	givenUpAfter  = "given up, executed"
	givenUpLate   = "given up, arrives late"
)

var sequenceFaults = []string{
	noFault, lostReply, lostTwice, lostRequest, twice, refusedOnce, lateToo, givenUpBefore, givenUpAfter, givenUpLate,
}

func (s *sequence) oneStep(t *testing.T) {
	op := s.pick()
	n := s.rnd.IntN(len(s.owners))
	fault := noFault
	if s.rnd.IntN(2) == 0 {
		fault = sequenceFaults[s.rnd.IntN(len(sequenceFaults))]
	}
	if op.reads && (fault == lateToo || fault == givenUpLate) {
		fault = lostReply // there is nothing late about a read
	}
	s.done[fault]++
	s.tried = append(s.tried, fmt.Sprintf("%d: owner %d: %s: %s", s.nowMS, n, op.name, fault))
	switch fault {
	case givenUpBefore, givenUpAfter, givenUpLate:
		s.giveUp(t, op, s.owners[n], fault)
	default:
		s.outlive(t, op, s.owners[n], fault)
	}
	require.Equal(t, s.model.stored(), s.storedIn(t), "%v: what is left", s)
}

// scripts has these done to the next script calls of flushes, and rest to all after
// them. An empty flush, which only fences, passes.
func (s *sequence) scripts(rest faultproxy.Action, next ...faultproxy.Action) {
	s.proxy.SetRule(faultproxy.Only(func(c faultproxy.Command) faultproxy.Action {
		switch {
		case isFence(c.Words):
			return pass
		case len(next) > 0:
			a := next[0]
			next = next[1:]
			return a
		}
		return rest
	}, "evalsha", "eval"))
}

// outlive makes a call that repeats itself until it is answered.
func (s *sequence) outlive(t *testing.T, op sequenceOp, store *persist.Redis, fault string) {
	executed := 1 // copies
	switch fault {
	case noFault:
		s.scripts(pass)
	case lostReply:
		s.scripts(pass, lostAnswer)
		executed = 2
	case lostTwice:
		s.scripts(pass, lostAnswer, lostAnswer)
		executed = 3
	case lostRequest:
		s.scripts(pass, notSent)
	case twice:
		s.scripts(pass, faultproxy.Do(faultproxy.Twice))
		executed = 2
	case refusedOnce:
		s.scripts(pass, errorReply("LOADING Redis is loading the dataset in memory"))
	case lateToo:
		s.scripts(pass, faultproxy.Do(faultproxy.HoldAndCut))
	}
	got, err := op.store(s.ctx, store)
	s.scripts(pass)
	require.NoError(t, err, "%v", s)
	if fault == lateToo {
		s.keepLate(t, op)
	}
	if op.bare {
		for range executed - 1 {
			op.model()
		}
	}
	require.Equal(t, op.model(), got, "%v: the answer", s)
}

// giveUp makes a call whose ctx ends without an answer.
func (s *sequence) giveUp(t *testing.T, op sequenceOp, store *persist.Redis, fault string) {
	before := s.proxy.Counts()
	happened := func(c faultproxy.Counts) bool { return c.CutRequests > before.CutRequests }
	switch fault {
	case givenUpBefore:
		s.scripts(notSent)
	case givenUpAfter:
		s.scripts(notSent, lostAnswer)
		happened = func(c faultproxy.Counts) bool { return c.DroppedReplies > before.DroppedReplies }
	case givenUpLate:
		s.scripts(notSent, faultproxy.Do(faultproxy.HoldAndCut))
		happened = func(c faultproxy.Counts) bool { return c.Held > before.Held }
	}
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		_, err := op.store(ctx, store)
		failed <- err
	}()
	require.NoError(t, s.proxy.Wait(s.ctx, happened), "%v", s)
	cancel()
	err := <-failed
	if fault == givenUpLate {
		s.keepLate(t, op)
	}
	s.cutAll(t)
	s.scripts(pass)
	require.ErrorIs(t, err, context.Canceled, "%v", s)
	require.ErrorIs(t, err, persist.ErrRetryable, "%v", s)
	if op.reads {
		require.NotErrorIs(t, err, persist.ErrUnknownOutcome, "%v", s)
		return
	}
	require.ErrorIs(t, err, persist.ErrUnknownOutcome, "%v", s)
	if !op.bare {
		s.fenceOff(t, store)
	}
	if fault == givenUpAfter {
		op.model()
	}
}

// cutAll ends what a call that was given up still does: an attempt may be under way. Afterwards
// only what is held can arrive.
func (s *sequence) cutAll(t *testing.T) {
	for s.proxy.Counts().Open > len(s.late) {
		require.NoError(t, s.ctx.Err(), "a connection does not end")
		s.proxy.CutAll()
		runtime.Gosched()
	}
}

// fenceOff returns when a later flush of each lane is answered: the empty one, or a write that
// changes nothing. Until then what was given up may still be executed.
func (s *sequence) fenceOff(t *testing.T, store *persist.Redis) {
	if s.rnd.IntN(2) == 0 {
		require.NoError(t, store.Close(s.ctx), "%v", s)
		return
	}
	cancelled, err := store.Cancel(s.ctx, []string{"nobody"})
	require.NoError(t, err, "%v", s)
	require.Equal(t, []persist.CancelOutcome{persist.NotFound}, cancelled, "%v", s)
	claims, err := store.Claim(s.ctx, "tok", []string{"nobody"}, time.Minute, 0)
	require.NoError(t, err, "%v", s)
	require.Equal(t, []persist.Claim{{ID: "nobody"}}, claims.Claims, "%v", s)
	acked, err := store.Ack(s.ctx, []persist.Lease{{ID: "nobody", Token: "tok"}})
	require.NoError(t, err, "%v", s)
	require.Equal(t, []persist.Settlement{{ID: "nobody"}}, acked, "%v", s)
}

func (s *sequence) keepLate(t *testing.T, op sequenceOp) {
	h, err := s.proxy.NextHeld(s.ctx)
	require.NoError(t, err, "%v", s)
	s.late = append(s.late, lateCopy{h, op})
}

// arrive lets a late copy go. It changes nothing, unless it has no session: then it is one
// more call.
func (s *sequence) arrive(t *testing.T, i int) {
	c := s.late[i]
	s.late = append(s.late[:i], s.late[i+1:]...)
	s.tried = append(s.tried, "late: "+c.op.name)
	c.held.Release()
	require.NoError(t, c.held.Executed(s.ctx), "%v", s)
	if c.op.bare {
		c.op.model()
	}
	require.Equal(t, s.model.stored(), s.storedIn(t), "%v: what is left", s)
}

// storedIn is what Redis holds for this sequence, read past the proxy and without a script.
func (s *sequence) storedIn(t *testing.T) stored {
	scores := func(key string) map[string]string {
		m := map[string]string{}
		set, err := s.mini.SortedSet(s.key(key))
		if err == miniredis.ErrKeyNotFound {
			return m
		}
		require.NoError(t, err)
		for id, score := range set {
			m[id] = strconv.FormatFloat(score, 'f', -1, 64)
		}
		return m
	}
	records := func(key string) map[string]string {
		m := map[string]string{}
		fields, err := s.mini.HKeys(s.key(key))
		if err == miniredis.ErrKeyNotFound {
			return m
		}
		require.NoError(t, err)
		for _, id := range fields {
			m[id] = s.mini.HGet(s.key(key), id)
		}
		return m
	}
	return stored{
		Due: scores("due"), Running: scores("running"), Dead: scores("dead"),
		Claims: records("claims"), Reasons: records("reasons"),
	}
}

func (s *sequence) key(name string) string { return "{" + s.name + ":0}:" + name }

// requireOnePlaceEach checks where each id stands: in one place, or nowhere.
func (s *sequence) requireOnePlaceEach(t *testing.T) {
	left := s.storedIn(t)
	places := map[string]int{}
	for _, place := range []map[string]string{left.Due, left.Running, left.Dead} {
		for id := range place {
			places[id]++
		}
	}
	for _, id := range sequenceIDs {
		want := 1
		if s.model[id] == nil {
			want = 0
		}
		require.Equal(t, want, places[id], "%v: places of %q", s, id)
		delete(places, id)
	}
	require.Empty(t, places, "%v: ids that nobody knows", s)
}

// requireSeenAlike asks a store in all its ways.
func (s *sequence) requireSeenAlike(t *testing.T) {
	store := s.owners[0]
	page, err := store.Window(s.ctx, persist.Cursor{}, persist.MaxDueMS, 100)
	require.NoError(t, err, "%v", s)
	require.Equal(t, append([]persist.Due{}, s.model.window(persist.MaxDueMS)...), append([]persist.Due{}, page.Due...), "%v", s)
	dead, err := store.Dead(s.ctx, persist.Cursor{}, 100)
	require.NoError(t, err, "%v", s)
	require.Equal(t, append([]persist.Dead{}, s.model.dead()...), append([]persist.Dead{}, dead.Dead...), "%v", s)
	depth, err := store.Depth(s.ctx)
	require.NoError(t, err, "%v", s)
	require.Equal(t, s.model.depth(), depth, "%v", s)
	records, err := store.Lookup(s.ctx, sequenceIDs)
	require.NoError(t, err, "%v", s)
	require.Equal(t, each(sequenceIDs, s.model.lookup), records, "%v", s)
}

// end takes every way out, and leaves no task.
func (s *sequence) end(t *testing.T) {
	store := s.owners[0]
	_, err := store.Cancel(s.ctx, sequenceIDs)
	require.NoError(t, err, "%v", s)
	for id, task := range s.model {
		if task.running() {
			settled, err := store.Ack(s.ctx, []persist.Lease{{ID: id, Token: task.token}})
			require.NoError(t, err, "%v", s)
			require.Equal(t, persist.Settled, settled[0].State, "%v", s)
		}
	}
	_, err = store.Discard(s.ctx, sequenceIDs)
	require.NoError(t, err, "%v", s)
	require.Equal(t, model{}.stored(), s.storedIn(t), "%v", s)
}

// few is one to three ids; one may stand in it twice.
func (s *sequence) few() []string {
	list := make([]string, 1+s.rnd.IntN(3))
	for i := range list {
		list[i] = sequenceIDs[s.rnd.IntN(len(sequenceIDs))]
	}
	return list
}

func (s *sequence) leases() (list []persist.Lease) {
	for _, id := range s.few() {
		list = append(list, s.lease(id))
	}
	return list
}

// pick is one operation. Its model is judged by the clock of when it is asked.
func (s *sequence) pick() sequenceOp {
	switch s.rnd.IntN(19) {
	case 0, 1, 2:
		return s.scheduling()
	case 3, 4:
		list := s.few()
		return sequenceOp{
			name:  fmt.Sprintf("cancel %q", list),
			store: func(ctx context.Context, r *persist.Redis) (any, error) { return r.Cancel(ctx, list) },
			model: func() any { return each(list, s.model.cancel) },
		}
	case 5, 6, 7, 8:
		return s.claiming()
	case 9, 10:
		list := s.leases()
		return sequenceOp{
			name:  fmt.Sprintf("ack %+v", list),
			store: func(ctx context.Context, r *persist.Redis) (any, error) { return r.Ack(ctx, list) },
			model: func() any { return each(list, s.model.ack) },
		}
	case 11:
		return s.retrying()
	case 12:
		return s.burying()
	case 13:
		list, ms := s.leases(), []int64{1, 7_200_000}[s.rnd.IntN(2)]
		return sequenceOp{
			name: fmt.Sprintf("renew %+v for %d ms", list, ms),
			store: func(ctx context.Context, r *persist.Redis) (any, error) {
				return r.Renew(ctx, list, time.Duration(ms)*time.Millisecond)
			},
			model: func() any {
				return each(list, func(l persist.Lease) bool { return s.model.renew(l, s.nowMS, ms) })
			},
		}
	case 14:
		list := s.few()
		return sequenceOp{
			name:  fmt.Sprintf("requeue %q", list),
			store: func(ctx context.Context, r *persist.Redis) (any, error) { return r.Requeue(ctx, list) },
			model: func() any {
				return each(list, func(id string) persist.Settlement { return s.model.requeue(id, s.nowMS) })
			},
		}
	case 15:
		list := s.few()
		return sequenceOp{
			name:  fmt.Sprintf("discard %q", list),
			store: func(ctx context.Context, r *persist.Redis) (any, error) { return r.Discard(ctx, list) },
			model: func() any { return each(list, s.model.discard) },
		}
	case 16:
		return s.reaping()
	case 17:
		list := s.dues()
		return sequenceOp{
			name:  fmt.Sprintf("ensure %+v", list),
			store: func(ctx context.Context, r *persist.Redis) (any, error) { return r.Ensure(ctx, list) },
			model: func() any { return each(list, s.model.ensure) },
		}
	default:
		return s.reading()
	}
}

func each[Q, A any](list []Q, ask func(Q) A) (answers []A) {
	for _, q := range list {
		answers = append(answers, ask(q))
	}
	return answers
}

// dues are a few ids, each with a time.
func (s *sequence) dues() (list []persist.Due) {
	for _, id := range s.few() {
		list = append(list, persist.Due{ID: id, DueMS: s.dueMS()})
	}
	return list
}

func (s *sequence) scheduling() sequenceOp {
	list := s.dues()
	return sequenceOp{
		name:  fmt.Sprintf("schedule %+v", list),
		store: func(ctx context.Context, r *persist.Redis) (any, error) { return nil, r.Schedule(ctx, list) },
		model: func() any {
			for _, d := range list {
				s.model.schedule(d.ID, d.DueMS)
			}
			return nil
		},
	}
}

func (s *sequence) claiming() sequenceOp {
	list, ms, most := s.few(), []int64{1, 3_600_000}[s.rnd.IntN(2)], []int{0, 0, 1, 2}[s.rnd.IntN(4)]
	token := s.tokens[s.rnd.IntN(len(s.tokens))]
	if s.rnd.IntN(4) > 0 {
		token = fmt.Sprintf("tok%d", len(s.tokens))
		s.tokens = append(s.tokens, token)
	}
	type answer struct {
		claims []persist.Claim
		nowMS  int64
	}
	return sequenceOp{
		name: fmt.Sprintf("claim %s %q for %d ms, at most %d times", token, list, ms, most),
		store: func(ctx context.Context, r *persist.Redis) (any, error) {
			claims, err := r.Claim(ctx, token, list, time.Duration(ms)*time.Millisecond, most)
			return answer{claims.Claims, claims.NowMS}, err
		},
		model: func() any {
			return answer{each(list, func(id string) persist.Claim { return s.model.claim(id, token, s.nowMS, ms, most) }), s.nowMS}
		},
	}
}

func (s *sequence) retrying() sequenceOp {
	var list []persist.Retry
	for _, l := range s.leases() {
		list = append(list, persist.Retry{Lease: l, DueMS: s.dueMS(), Uncounted: s.rnd.IntN(3) == 0, Abandoned: s.rnd.IntN(4) == 0})
	}
	return sequenceOp{
		name:  fmt.Sprintf("retry %+v", list),
		store: func(ctx context.Context, r *persist.Redis) (any, error) { return r.Retry(ctx, list) },
		model: func() any { return each(list, s.model.retry) },
	}
}

func (s *sequence) burying() sequenceOp {
	var list []persist.Burial
	for _, l := range s.leases() {
		list = append(list, persist.Burial{Lease: l, Reason: oddReasons[s.rnd.IntN(len(oddReasons))]})
	}
	return sequenceOp{
		name:  fmt.Sprintf("bury %+v", list),
		store: func(ctx context.Context, r *persist.Redis) (any, error) { return r.Bury(ctx, list) },
		model: func() any {
			return each(list, func(b persist.Burial) persist.Settlement { return s.model.bury(b, s.nowMS) })
		},
	}
}

func (s *sequence) reaping() sequenceOp {
	limit := 1 + s.rnd.IntN(3)
	return sequenceOp{
		name: fmt.Sprintf("reap %d", limit),
		bare: true,
		store: func(ctx context.Context, r *persist.Redis) (any, error) {
			list, err := r.Reap(ctx, limit)
			return append([]persist.Due{}, list...), err
		},
		model: func() any { return append([]persist.Due{}, s.model.reap(s.nowMS, limit)...) },
	}
}

// reading is a page of what is due, and all that is known.
func (s *sequence) reading() sequenceOp {
	if s.rnd.IntN(2) == 0 {
		return sequenceOp{
			name: "lookup", reads: true,
			store: func(ctx context.Context, r *persist.Redis) (any, error) { return r.Lookup(ctx, sequenceIDs) },
			model: func() any { return each(sequenceIDs, s.model.lookup) },
		}
	}
	until := s.dueMS()
	return sequenceOp{
		name: fmt.Sprintf("window until %d", until), reads: true,
		store: func(ctx context.Context, r *persist.Redis) (any, error) {
			page, err := r.Window(ctx, persist.Cursor{}, until, 100)
			return append([]persist.Due{}, page.Due...), err
		},
		model: func() any { return append([]persist.Due{}, s.model.window(until)...) },
	}
}

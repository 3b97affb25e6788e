package persist

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Window reads due tasks, oldest first (by due time, then id by bytes): those after
// the cursor and due at untilMS or before, at most limit of them. The zero Cursor
// starts at the beginning; Next of the page goes on.
//
// What stays in place while pages are read is read exactly once, also when more tasks
// than a page holds are due in one millisecond, and whatever is added or removed
// meanwhile. What is written behind the cursor is for the next pass.
//
// ErrInvalid is returned for a limit below 1. A limit above twice MaxBatch
// takes several calls. With an error the page has what could be read, and Next is the
// cursor that was given.
func (r *Redis) Window(ctx context.Context, after Cursor, untilMS int64, limit int) (Page, error) {
	if err := checkLimit(limit); err != nil {
		return Page{Next: after}, err
	}
	var page Page
	var mu sync.Mutex // guards page.Clock
	p := pages[Due]{
		place: Due.place,
		most:  maxRead,
		read: func(ctx context.Context, s *shard, after Cursor, n int) ([]Due, Cursor, bool, error) {
			w, err := s.window(ctx, after, min(untilMS, MaxDueMS), n)
			if err != nil {
				return nil, after, false, err
			}
			if len(w.dues) > 0 {
				after = w.dues[len(w.dues)-1].place()
			}
			mu.Lock()
			defer mu.Unlock()
			if page.Clock.Sent.IsZero() || w.clock.StoreUS < page.Clock.StoreUS {
				page.Clock = w.clock // of several the one furthest behind, as in Claim
			}
			return r.ofShard(w.dues, s), after, w.more, nil
		},
	}
	var err error
	page.Due, page.Next, page.More, err = p.page(ctx, r, fromStart(after), limit)
	return page, err
}

// ofShard is those of dues that belong to s; what a hand wrote elsewhere is nobody's. dues is
// used up.
func (r *Redis) ofShard(dues []Due, s *shard) []Due {
	if len(r.shards) == 1 {
		return dues
	}
	return slices.DeleteFunc(dues, func(d Due) bool { return r.ShardOf(d.ID) != s.number })
}

// maxRead is how many a read of scores takes at most. No script has to pass them on, and
// the fewer round trips a long reading makes the less it waits; but they hold up Redis for
// a millisecond or so.
const maxRead = 2 * MaxBatch

func (d Due) place() Cursor { return Cursor{DueMS: d.DueMS, ID: d.ID} }

// windowPart is what one shard has of a window.
type windowPart struct {
	dues  []Due
	more  bool
	clock Sample
}

// window reads at most n from one shard, by score: what passes through a script is
// copied twice. It reads from the cursor's millisecond on, so what stands there and
// was read before is read again; mostly that is one. Where it is most of what was
// read, a script finds the cursor's place among those of its millisecond.
func (s *shard) window(ctx context.Context, after Cursor, untilMS int64, n int) (windowPart, error) {
	least := strconv.FormatInt(after.DueMS, 10)
	if after == (Cursor{}) {
		least = "-inf" // what a hand wrote
	}
	ask := n + 2 // the cursor's own, and one more that tells whether there is more
	clock, found, err := s.readScores(ctx, least, untilMS, ask)
	if err != nil {
		return windowPart{}, err
	}
	full := len(found) == ask
	for after != (Cursor{}) && len(found) > 0 && comparePlaces(found[0].place(), after) <= 0 {
		found = found[1:]
	}
	switch {
	case len(found) > n:
		return windowPart{found[:n], true, clock}, nil
	case !full:
		return windowPart{found, false, clock}, nil
	case len(found) > n/2+1:
		return windowPart{found[:len(found)-1], true, clock}, nil // the last one is what is more
	}
	return s.windowByRank(ctx, after, untilMS, n)
}

// windowByRank is window by a script.
func (s *shard) windowByRank(ctx context.Context, after Cursor, untilMS int64, n int) (windowPart, error) {
	rp, err := s.run(ctx, windowScript, after.DueMS, after.ID, untilMS, n)
	if err != nil {
		return windowPart{}, err
	}
	w := windowPart{clock: rp.sample(), more: rp.int() == 1}
	w.dues = rp.scored()
	return w, rp.done()
}

// readScores reads the clock, and the first n of due from a score on.
func (s *shard) readScores(ctx context.Context, least string, untilMS int64, n int) (Sample, []Due, error) {
	a, err := s.repeat(ctx, windowScript.name, false, func() answer {
		return s.try(ctx, func() answer {
			read := []any{"zrange", s.keys.due, least, untilMS, "byscore", "limit", 0, n, "withscores"}
			a := s.readScoresOnce(ctx, s.call("evalsha", nowScript.sha, nil), read)
			if isNoScript(a.err) {
				a = s.readScoresOnce(ctx, s.call("eval", nowScript.src, nil), read)
			}
			return a
		})
	})
	if err != nil {
		return Sample{}, nil, err
	}
	both := a.value.(scoresAndClock)
	a.value = both.clock
	rp, err := newReply(nowScript, a)
	if err != nil {
		return Sample{}, nil, err
	}
	clock := rp.sample()
	return clock, both.found, rp.done()
}

// scoresAndClock is what one round trip brings: the value of its answer.
type scoresAndClock struct {
	found []Due
	clock any // the reply of nowScript
}

// onceScores is once for a read of scores.
type onceScores struct{ *redis.ZSliceCmd }

func (onceScores) NoRetry() bool { return true }

// readScoresOnce makes one round trip. The value is a scoresAndClock.
func (s *shard) readScoresOnce(ctx context.Context, now, read []any) answer {
	clock, scores := once{redis.NewCmd(ctx, now...)}, onceScores{redis.NewZSliceCmd(ctx, read...)}
	pipe := s.client.Pipeline()
	_ = pipe.Process(ctx, clock)
	_ = pipe.Process(ctx, scores)
	a := answer{sent: time.Now()}
	_, err := pipe.Exec(ctx)
	a.received = time.Now()
	if a.err = cmp.Or(clock.Err(), scores.Err(), err); a.err != nil {
		s.follow(ctx, a.err)
		return a
	}
	found := make([]Due, len(scores.Val()))
	for i, z := range scores.Val() {
		id, ok := z.Member.(string)
		if !ok || math.IsNaN(z.Score) {
			a.err = fmt.Errorf("%w: %v is no id with a score", errBadReply, z)
			return a
		}
		found[i] = Due{ID: id, DueMS: scoreMS(z.Score)}
	}
	a.value = scoresAndClock{found, clock.Val()}
	return a
}

//go:build !race

package persist_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/persist"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// The steps of the exploration on Redis: written into the keys, and read from there.

func TestRedisMakesEveryStepOfTheExploration(t *testing.T) {
	t.Parallel()
	b := setupReal(t)
	replayOnRedis(t, b, b.nowMS(t), false)
}

func TestMiniredisMakesEveryStepOfTheExploration(t *testing.T) {
	t.Parallel()
	b := setupMini(t)
	b.mini.SetTime(noon)
	replayOnRedis(t, b, noon.UnixMilli(), true)
}

// replayOnRedis gives each kind of op a namespace of its own.
func replayOnRedis(t *testing.T, b bed, baseMS int64, exact bool) {
	for k, list := range steps(t, func(cell) bool { return true }) {
		namespace := kindNames[k]
		store, err := persist.New(b.client, persist.Options{Namespace: namespace})
		require.NoError(t, err)
		// A round of Reap takes 100 records a call at least, of claims and then of reasons.
		s := stage{Store: store, baseMS: baseMS, exact: exact, rounds: 4 + len(list)/40}
		k := keysOf(namespace)
		s.write(t, b.client, k, list)
		s.ask(t, list)
		s.read(t, b.client, k, list)
		compare(t, list)
	}
}

// keysOf are the keys of a namespace, as doc.go has them.
type keysOf string

func (k keysOf) name(key string) string { return "{" + string(k) + ":0}:" + key }

// write puts each task where its step found it.
func (s stage) write(t *testing.T, client *redis.Client, k keysOf, list []*replayed) {
	t.Helper()
	ctx := bounded(t)
	_, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, r := range list {
			c := r.step.before
			for key, at := range map[string]int8{"due": c.due, "running": c.lease, "dead": c.buried} {
				if at != none {
					p.ZAdd(ctx, k.name(key), redis.Z{Score: float64(s.ms(at)), Member: r.id})
				}
			}
			if record := s.record(c); record != "- 0 - - -" {
				p.HSet(ctx, k.name("claims"), r.id, record)
			}
			if c.buried != none {
				p.HSet(ctx, k.name("reasons"), r.id, "1 1000 broken")
			}
		}
		return nil
	})
	require.NoError(t, err)
}

// record is that of claims: token, attempt, flags, first due, successor.
func (s stage) record(c cell) string {
	at := func(tick int8) string { return or(strconv.FormatInt(s.ms(tick), 10), tick != none) }
	flags := ""
	if c.cancelled {
		flags += "c"
	}
	if c.lost {
		flags += "l"
	}
	return fmt.Sprintf("%s %d %s %s %s", or(tokenName(c.token), c.token != 0), c.attempt, or(flags, flags != ""), at(c.first), at(c.succ))
}

// read takes what is left of each task.
func (s stage) read(t *testing.T, client *redis.Client, k keysOf, list []*replayed) {
	t.Helper()
	ctx := bounded(t)
	scores := func(key string) map[string]int8 {
		m := map[string]int8{}
		all, err := client.ZRangeWithScores(ctx, k.name(key), 0, -1).Result()
		require.NoError(t, err)
		for _, z := range all {
			m[z.Member.(string)] = s.tick(t, int64(z.Score))
		}
		return m
	}
	due, running, dead := scores("due"), scores("running"), scores("dead")
	claims, err := client.HGetAll(ctx, k.name("claims")).Result()
	require.NoError(t, err)
	reasons, err := client.HGetAll(ctx, k.name("reasons")).Result()
	require.NoError(t, err)
	of := func(m map[string]int8, id string) int8 {
		if at, ok := m[id]; ok {
			return at
		}
		return none
	}
	for _, r := range list {
		c := nowhere
		c.due, c.lease, c.buried = of(due, r.id), of(running, r.id), of(dead, r.id)
		record, has := claims[r.id]
		if has {
			s.decode(t, &c, record)
			require.True(t, c.lease != none || c.due != none && (c.attempt > 0 || c.lost), "%v of %v leaves a record: %v", r.step.op, r.step.before, c)
		}
		_, reason := reasons[r.id]
		require.Equal(t, c.buried != none, reason, "a reason is there for the dead, and for nobody else: %v of %v", r.step.op, r.step.before)
		r.got.after = c
	}
}

func (s stage) decode(t *testing.T, c *cell, record string) {
	t.Helper()
	words := strings.Split(record, " ")
	require.Len(t, words, 5, record)
	at := func(word string) int8 {
		if word == "-" {
			return none
		}
		ms, err := strconv.ParseInt(word, 10, 64)
		require.NoError(t, err, record)
		return s.tick(t, ms)
	}
	if words[0] != "-" {
		token, err := strconv.Atoi(strings.TrimPrefix(words[0], "tok"))
		require.NoError(t, err, record)
		c.token = int8(token)
	}
	attempt, err := strconv.Atoi(words[1])
	require.NoError(t, err, record)
	c.attempt, c.first, c.succ = int8(attempt), at(words[3]), at(words[4])
	c.cancelled, c.lost = strings.Contains(words[2], "c"), strings.Contains(words[2], "l")
}

// The script judges the number of a flush as the model does: by what its session has.
func TestTheScriptJudgesNumbersAsTheModelDoes(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		for last := range int8(4) {
			for number := int8(1); number < 4; number++ {
				b.client.FlushAll(t.Context())
				b.scheduled(t, past, "x")
				require.NoError(t, b.client.Del(t.Context(), keySessions).Err())
				x := newExplorer(without(), plays()[0])
				w := x.p.begin()
				w.cell.due = 1
				if last > 0 {
					w.kept[0] = session{last: last, saved: answer{state: 77}}
					do(t, b.client, "HSET", keySessions, "s", fmt.Sprintf("%d %d 77", last, time.Now().UnixMilli()))
				}
				a, ok, _ := x.flush(&w, 0, number, op{kind: cancel})

				keys := []string{keyDue, keyRunning, keyClaims, keyDead, keyReasons, keySessions, keyShards, keyEpoch, keyReconcile}
				got, err := b.client.Eval(t.Context(), persist.FlushSource, keys, "s", number, "x", 1, 0, 1, "x").Slice()
				name := fmt.Sprintf("number %d after %d", number, last)
				if !ok {
					require.ErrorContains(t, err, "STALE", name)
				} else {
					require.NoError(t, err, name)
					_, said, _ := strings.Cut(got[3].(string), " ")
					require.Equal(t, strconv.Itoa(int(a.state)), said, name)
				}
				_, isDue := b.stored(t).Due["x"]
				require.Equal(t, w.cell.due != none, isDue, name)
				kept := b.client.HGet(t.Context(), keySessions, "s").Val()
				words := strings.Split(kept, " ")
				require.Equal(t, strconv.Itoa(int(w.kept[0].last)), words[0], name)
				require.Equal(t, strconv.Itoa(int(w.kept[0].saved.state)), words[2], name)
			}
		}
	})
}

package persist_test

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/persist"
)

// One id that is asked alone takes lua/lone.lua, among others lua/flush.lua: from every state, and
// from those that only a hand leaves behind, both come to the same.
func TestALoneWriteDoesWhatItDoesAmongOthers(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		scores := []string{"", "1700000000000", "1700000000000.5"}
		marks := []string{"", "1700000000001"}
		records := []string{
			"", "tok 1 - 1700000000000 -", "tok 2 c 1700000000000 -", "tok 1 l - 1800000000000", "- 3 - 1700000000000 -", "- 1 l - -", "by hand",
		}
		burials := []string{"", "2 1700000000000 why"}
		keys := []string{keyDue, keyRunning, keyDead, keyClaims, keyReasons}
		// what stands in each of keys about x
		lay := func(state []string) {
			_, err := b.client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
				p.Del(t.Context(), keys...)
				for i, value := range state {
					switch {
					case value == "":
					case i < 3:
						p.Do(t.Context(), "ZADD", keys[i], value, "x")
					default:
						p.HSet(t.Context(), keys[i], "x", value)
					}
				}
				return nil
			})
			require.NoError(t, err)
		}
		found := func() string {
			var all []string
			for i, key := range keys {
				read := "HGET"
				if i < 3 {
					read = "ZSCORE"
				}
				value, err := b.client.Do(t.Context(), read, key, "x").Result()
				if err != redis.Nil {
					require.NoError(t, err)
				}
				all = append(all, fmt.Sprint(value))
			}
			return fmt.Sprintf("%q", all)
		}
		writes := map[string]func(ids ...string) any{
			"schedule": func(ids ...string) any {
				var dues []persist.Due
				for _, id := range ids {
					dues = append(dues, persist.Due{ID: id, DueMS: future})
				}
				require.NoError(t, b.Schedule(t.Context(), dues))
				return nil
			},
			"cancel": func(ids ...string) any {
				got, err := b.Cancel(t.Context(), ids)
				require.NoError(t, err)
				return got[0]
			},
		}
		for n := range len(scores) * len(marks) * len(marks) * len(records) * len(burials) {
			var state []string
			for _, values := range [][]string{scores, marks, marks, records, burials} {
				state = append(state, values[n%len(values)])
				n /= len(values)
			}
			for name, write := range writes {
				lay(state)
				alone := write("x")
				then := found()
				lay(state)
				require.Equal(t, write("x", "y"), alone, "%s of %q", name, state)
				require.Equal(t, found(), then, "%s of %q", name, state)
			}
		}
	})
}

// An answer that is lost is asked for again: both scripts keep it in the same form, and a copy
// that comes late changes nothing.
func TestALoneWriteIsExecutedOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		run := func(number int, args ...any) string {
			t.Helper()
			call := []any{"EVAL", persist.FlushSource, 9, keyDue, keyRunning, keyClaims, keyDead, keyReasons, keySessions, "s", "e", "r", "session", number}
			got, err := b.client.Do(t.Context(), append(call, args...)...).Slice()
			if err != nil {
				require.ErrorContains(t, err, "STALE")
				return "stale"
			}
			require.Len(t, got, 4)
			return fmt.Sprint(got[2], ": ", got[3])
		}
		schedule := []any{"s", 1, 0, 2, "x", future}
		cancel := []any{"x", 1, 0, 1, "x"}
		first := run(1, schedule...)
		require.Regexp(t, `^0: \d{13}$`, first)
		require.Equal(t, "1: "+first[3:], run(1, schedule...))
		cancelled := run(2, cancel...)
		require.Regexp(t, `^1: \d{13} 1$`, cancelled)
		require.Equal(t, "2: "+cancelled[3:], run(2, cancel...), "it was cancelled once, and is told so again")
		require.Equal(t, "stale", run(1, schedule...))
		require.Regexp(t, `^2: \d{13} 0$`, run(3, cancel...), "nothing is there any more")
		b.requireEmpty(t)
	})
}

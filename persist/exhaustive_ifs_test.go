//go:build !race

package persist_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// decisions are the lines of the scripts that decide something, each with the guards that
// stand for it, by function. A line that has none says why.
var decisions = map[string][]guard{
	"schedule: if t.lease then": {scheduleOfRunningIsSuccessor},

	"ensure: if t.due or t.lease or t.buried then return false end": {ensureLeavesDue, ensureLeavesRunning, ensureLeavesDead},

	"cancel: if t.lease then":                          {cancelMarksRunning},
	"cancel: if not t.due then return NOT_FOUND end":   {cancelOnlyOfDue},
	"cancel: return lost and RUNNING_NOW or CANCELLED": {cancelOfLostIsRunning},

	"claim: if t.lease then":                                               {claimOfRunning},
	"claim: if t.token ~= token then return BUSY, 0, 0, 0 end":             {claimOfOthersIsBusy},
	"claim: return CLAIMED, t.attempt, t.first or now, 0":                  nil, // a record by hand; it is replayed
	"claim: if not t.due then return GONE, 0, 0, 0 end":                    {claimOnlyOfDue},
	"claim: if t.due > now then return NOT_YET, 0, t.due, t.due - now end": {claimNotEarly},
	"claim: if most > 0 and t.attempt >= most then":                        {noLimitIsNoLimit, attemptLimit},
	"claim: t.first = t.first or t.due":                                    {firstDueStays},

	"held: return t.lease and t.token ~= '' and t.token == token": {
		heldNeedsLease, heldNeedsToken, tokenOfAck, tokenOfRetry, tokenOfBury, tokenOfRenew,
	},

	"outranked: if t.succ then": {
		successorBeforeCancel, ackYieldsToSuccessor, retryYieldsToSuccessor, buryYieldsToSuccessor, reapYieldsToSuccessor,
	},
	"outranked: if t.cancelled then": {retryYieldsToCancel, buryYieldsToCancel, reapYieldsToCancel}, // ack ends it anyway

	"ack: if not held(t, token) then return REFUSED, 0 end": {tokenOfAck},
	"ack: if state then return state, due end":              {ackYieldsToSuccessor},

	"retry: if not held(t, token) then return REFUSED, 0 end":             {tokenOfRetry},
	"retry: if state then return state, at end":                           {retryYieldsToSuccessor, retryYieldsToCancel},
	"retry: if uncounted then t.attempt = math.max(0, t.attempt - 1) end": {uncountedTakesBack, countedStaysCounted, attemptNotBelowZero},
	"retry: if abandoned then t.lost = true end":                          {abandonedIsLost, othersAreNotLost},
	"retry: if t.attempt == 0 and not t.lost then fresh(t, due) end":      {afreshOnlyWithoutAttempts, afreshOnlyWhereNotLost, uncountedLeavesNoTrace},

	"bury: if not held(t, token) then return REFUSED, 0 end": {tokenOfBury},
	"bury: if state then return state, due end":              {buryYieldsToSuccessor, buryYieldsToCancel},

	"renew: if not held(t, token) then return false end": {tokenOfRenew},
	"renew: t.lease = math.max(t.lease, now + lease)":    {renewNeverShortens},

	"requeue: if not t.buried then return REFUSED, 0 end": {requeueOnlyOfDead},
	"discard: if not t.buried then return false end":      {discardOnlyOfDead},

	"reap: if state then return state, due end": {reapYieldsToSuccessor, reapYieldsToCancel},

	// The session part of flush.lua.
	"flush: if saved then":                                nil, // the first flush of a session: there is nothing to compare
	"flush: last = string.match(saved, '^(%d+) ') or '0'": nil, // an entry by hand: see TestASessionOutlivesTheLossOfItsEntry
	"flush: if last == ARGV[2] then":                      {sameNumberIsAnswered},
	"flush: if tonumber(last) > number then":              {lowerNumberIsRefused},

	// lone.lua, before it leaves everything else to the others.
	"lone: if ARGV[3] == 's' and #ARGV == 8 or ARGV[3] == 'x' and #ARGV == 7 then": nil, // see TestALoneWriteDoesWhatItDoesAmongOthers
	"lone: if saved then last = string.match(saved, '^(%d+) ') or '0' end":         nil, // as in flush.lua
	"lone: if tonumber(last) < tonumber(ARGV[2])":                                  {sameNumberIsAnswered, lowerNumberIsRefused},
	"lone: and not redis.call('HGET', KEYS[3], id)":                                {scheduleOfRunningIsSuccessor, cancelMarksRunning, cancelOfLostIsRunning},
	"lone: and not redis.call('ZMSCORE', KEYS[2], id)[1]":                          nil, // running without a record, by hand: likewise
	"lone: and not redis.call('ZMSCORE', KEYS[4], id)[1]":                          {cancelOnlyOfDue},
	"lone: if ARGV[3] == 's' then":                                                 nil,
}

// Who adds a decision to the transitions or to the sessions adds its guard.
func TestEveryDecisionOfTheTransitionsHasItsGuard(t *testing.T) {
	t.Parallel()
	var found []string
	function := regexp.MustCompile(`^local function (\w+)`)
	decides := regexp.MustCompile(`\b(if|and|or|while|for|math\.max|math\.min)\b`)
	read := func(file, name, until string) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		part, _, ok := strings.Cut(string(text), until)
		require.True(t, ok || until == "\x00", "%s has no %q", file, until)
		for line := range strings.Lines(part) {
			if m := function.FindStringSubmatch(line); m != nil {
				name = m[1]
			}
			code, _, _ := strings.Cut(line, "--")
			if decides.MatchString(code) {
				found = append(found, name+": "+strings.TrimSpace(code))
			}
		}
	}
	read("lua/transitions.lua", "", "\x00")
	read("lua/flush.lua", "flush", "-- The writes, in groups")
	read("lua/lone.lua", "lone", "\x00")
	require.Len(t, decisions, len(found))
	for _, line := range found {
		require.Contains(t, decisions, line)
	}
}

//go:build !race

package persist_test

import "fmt"

// A guard is one thing that the scripts, or the lane that calls them, look at or do, and
// without which a promise would be broken. The model asks for each where the Lua has
// it, so that it can be built with any of them taken out.
type guard int

const (
	// lua/transitions.lua, from top to bottom. First the ifs of schedule and cancel.
	scheduleOfRunningIsSuccessor guard = iota
	lastSuccessorWins
	scheduleTakesCancelBack
	scheduleForgetsAttempts
	scheduleForgetsLost
	scheduleRaisesTheDead
	ensureLeavesDue
	ensureLeavesRunning
	ensureLeavesDead
	cancelMarksRunning
	cancelTakesSuccessor
	cancelForbidsRetry
	cancelOnlyOfDue
	cancelRemovesDue
	cancelOfLostIsRunning

	claimOfRunning
	claimOfOthersIsBusy
	claimAgainRenews
	claimAgainCountsOnce
	claimOnlyOfDue
	claimNotEarly
	noLimitIsNoLimit
	attemptLimit
	firstDueStays
	claimLeavesDue
	claimKeepsToken
	claimCounts

	heldNeedsLease
	heldNeedsToken
	tokenOfAck
	tokenOfRetry
	tokenOfBury
	tokenOfRenew

	successorBeforeCancel
	successorStartsAfresh
	ackYieldsToSuccessor
	retryYieldsToSuccessor
	retryYieldsToCancel
	buryYieldsToSuccessor
	buryYieldsToCancel
	reapYieldsToSuccessor
	reapYieldsToCancel

	retryDropsToken
	uncountedTakesBack
	countedStaysCounted
	attemptNotBelowZero
	abandonedIsLost
	othersAreNotLost
	afreshOnlyWithoutAttempts
	afreshOnlyWhereNotLost
	uncountedLeavesNoTrace
	renewNeverShortens
	requeueOnlyOfDead
	discardOnlyOfDead

	// lua/reap.lua.
	reapTakesBack
	reapOnlyOfRunning
	reapOnlyWhenOver
	reapDropsToken
	reapMarksLost

	// lua/state.lua.
	healDueWhileRunning
	healLostLease
	healEndedRun
	healLiving
	recordOfAttempts
	recordOfLost
	recordOnlyWhereNeeded

	// lua/flush.lua, the sessions.
	sameNumberIsAnswered
	lowerNumberIsRefused
	sessionIsKept

	// lane.go and fence.go.
	numberGoesUp
	sameNumberAgain
	oneInFlight
	fenceAfterUnknown

	guardCount
)

// cure is what a guard is for, in words, and what the explorer has to be told to see it.
type cure struct {
	words string
	play  string  // in which play its loss shows
	with  []guard // that do the same once more: only without them too its loss shows
}

var cures = [guardCount]cure{
	scheduleOfRunningIsSuccessor: {words: "schedule of what runs sets the successor", play: "table"},
	lastSuccessorWins:            {words: "the last successor wins", play: "table"},
	scheduleTakesCancelBack: {words: "schedule takes back the cancel of what runs", play: "short table",
		with: []guard{successorBeforeCancel}},
	scheduleForgetsAttempts: {words: "schedule starts with attempt 0", play: "table"},
	scheduleForgetsLost:     {words: "schedule forgets the mark lost", play: "table"},
	scheduleRaisesTheDead:   {words: "schedule takes the id out of dead", play: "table"},
	ensureLeavesDue:         {words: "ensure leaves what is due", play: "table"},
	ensureLeavesRunning:     {words: "ensure leaves what runs", play: "table"},
	ensureLeavesDead:        {words: "ensure leaves what is dead", play: "table"},
	cancelMarksRunning:      {words: "cancel of what runs answers Running", play: "table"},
	cancelTakesSuccessor:    {words: "cancel takes the successor away", play: "table"},
	cancelForbidsRetry:      {words: "cancel of what runs forbids the retry", play: "table"},
	cancelOnlyOfDue:         {words: "cancel finds only what is due", play: "table"},
	cancelRemovesDue:        {words: "cancel removes what is due", play: "table"},
	cancelOfLostIsRunning:   {words: "cancel of what is lost answers Running", play: "table"},

	claimOfRunning:       {words: "claim looks whether it runs", play: "table"},
	claimOfOthersIsBusy:  {words: "claim under another token is Busy", play: "table"},
	claimAgainRenews:     {words: "claim again begins the lease anew", play: "runs"},
	claimAgainCountsOnce: {words: "claim again counts no attempt", play: "runs"},
	claimOnlyOfDue:       {words: "claim only of what is due", play: "table"},
	claimNotEarly:        {words: "claim not before the due time", play: "table"},
	noLimitIsNoLimit:     {words: "0 is no limit of attempts", play: "table"},
	attemptLimit:         {words: "claim after the last attempt buries", play: "table"},
	firstDueStays:        {words: "the first due survives a retry", play: "table"},
	claimLeavesDue:       {words: "claim takes the id out of due", play: "table"},
	claimKeepsToken:      {words: "claim keeps the token", play: "table"},
	claimCounts:          {words: "claim counts the attempt", play: "table"},

	heldNeedsLease: {words: "a token holds only what runs", play: "short table",
		with: []guard{retryDropsToken, healEndedRun}},
	heldNeedsToken: {words: "no token holds nothing", play: "hand"},
	tokenOfAck:     {words: "ack only with the token", play: "table"},
	tokenOfRetry:   {words: "retry only with the token", play: "table"},
	tokenOfBury:    {words: "bury only with the token", play: "table"},
	tokenOfRenew:   {words: "renew only with the token", play: "table"},

	successorBeforeCancel:  {words: "the successor is looked at before the cancel", play: "hand"},
	successorStartsAfresh:  {words: "a successor starts afresh", play: "table"},
	ackYieldsToSuccessor:   {words: "a successor wins over ack", play: "table"},
	retryYieldsToSuccessor: {words: "a successor wins over retry", play: "table"},
	retryYieldsToCancel:    {words: "a cancel wins over retry", play: "table"},
	buryYieldsToSuccessor:  {words: "a successor wins over bury", play: "table"},
	buryYieldsToCancel:     {words: "a cancel wins over bury", play: "table"},
	reapYieldsToSuccessor:  {words: "a successor wins over reap", play: "table"},
	reapYieldsToCancel:     {words: "a cancel wins over reap", play: "table"},

	retryDropsToken: {words: "retry drops the token", play: "short table",
		with: []guard{heldNeedsLease, healEndedRun}},
	uncountedTakesBack:        {words: "an uncounted retry takes the attempt back", play: "table"},
	countedStaysCounted:       {words: "any other retry does not", play: "table"},
	attemptNotBelowZero:       {words: "no attempt below 0", play: "hand"},
	abandonedIsLost:           {words: "an abandoned retry marks lost", play: "table"},
	othersAreNotLost:          {words: "any other retry does not", play: "table"},
	afreshOnlyWithoutAttempts: {words: "a retry forgets only what had no attempt", play: "table"},
	afreshOnlyWhereNotLost:    {words: "a retry forgets no mark", play: "table"},
	uncountedLeavesNoTrace: {words: "an uncounted first attempt leaves no first due", play: "short table",
		with: []guard{recordOnlyWhereNeeded}},
	renewNeverShortens: {words: "renew never shortens a lease", play: "table"},
	requeueOnlyOfDead:  {words: "requeue only of what is dead", play: "table"},
	discardOnlyOfDead:  {words: "discard only of what is dead", play: "table"},

	reapTakesBack:     {words: "reap takes back what is over", play: "short table"},
	reapOnlyOfRunning: {words: "reap only of what runs", play: "table"},
	reapOnlyWhenOver:  {words: "reap only when the lease is over", play: "table"},
	reapDropsToken: {words: "reap drops the token", play: "short table",
		with: []guard{heldNeedsLease, healEndedRun}},
	reapMarksLost: {words: "reap marks lost", play: "table"},

	healDueWhileRunning: {words: "made due by hand while it runs: a successor", play: "hand"},
	healLostLease:       {words: "a record without its lease has one that is over", play: "hand"},
	healEndedRun:        {words: "what does not run has no token", play: "hand"},
	healLiving:          {words: "what lives is not dead", play: "hand"},
	recordOfAttempts:    {words: "a retried task keeps its record", play: "table"},
	recordOfLost:        {words: "a lost task keeps its record", play: "table"},
	recordOnlyWhereNeeded: {words: "what was never run has no record", play: "short table",
		with: []guard{uncountedLeavesNoTrace}},

	sameNumberIsAnswered: {words: "the same number gets the saved answer", play: "network"},
	lowerNumberIsRefused: {words: "a lower number is refused", play: "network"},
	sessionIsKept:        {words: "number and answer are kept", play: "network"},

	numberGoesUp:      {words: "each flush has a number of its own", play: "network"},
	sameNumberAgain:   {words: "a flush is sent again under its number", play: "network"},
	oneInFlight:       {words: "a lane has one flush on its way", play: "network"},
	fenceAfterUnknown: {words: "a lost flush is fenced off", play: "network"},
}

func (x guard) String() string { return fmt.Sprintf("%d, %s", int(x), cures[x].words) }

// guards are those that a model has.
type guards struct {
	out   [guardCount]bool
	asked [guardCount]bool
}

// without is the model with some guards taken out.
func without(taken ...guard) *guards {
	g := new(guards)
	for _, x := range taken {
		g.out[x] = true
	}
	return g
}

// on tells whether x is there. It is asked where x decides, and nowhere else.
func (g *guards) on(x guard) bool {
	g.asked[x] = true
	return !g.out[x]
}

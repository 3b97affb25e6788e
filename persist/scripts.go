package persist

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"strings"
)

// script is one Lua script, complete with what stands in front of it.
type script struct {
	name string // as in errors and log events
	src  string
	sha  string

	// writes: a call whose answer is lost may have changed something.
	writes bool
	// tellResent: ARGV[1] says whether an earlier copy may have been applied.
	tellResent bool
}

var (
	//go:embed lua/common.lua
	commonLua string
	//go:embed lua/state.lua
	stateLua string
	//go:embed lua/transitions.lua
	transitionsLua string
	//go:embed lua/page.lua
	pageLua string

	//go:embed lua/schedule.lua
	scheduleLua string
	//go:embed lua/cancel.lua
	cancelLua string
	//go:embed lua/claim.lua
	claimLua string
	//go:embed lua/ack.lua
	ackLua string
	//go:embed lua/retry.lua
	retryLua string
	//go:embed lua/bury.lua
	buryLua string
	//go:embed lua/renew.lua
	renewLua string
	//go:embed lua/reap.lua
	reapLua string
	//go:embed lua/requeue.lua
	requeueLua string
	//go:embed lua/discard.lua
	discardLua string

	//go:embed lua/window.lua
	windowLua string
	//go:embed lua/dead.lua
	deadLua string
	//go:embed lua/lookup.lua
	lookupLua string
	//go:embed lua/depth.lua
	depthLua string
	//go:embed lua/now.lua
	nowLua string
	//go:embed lua/probe.lua
	probeLua string
)

// The scripts. They are values that nobody changes.
var (
	scheduleScript = writer("schedule", scheduleLua)
	cancelScript   = writer("cancel", cancelLua)
	claimScript    = writer("claim", claimLua).tell()
	ackScript      = writer("ack", ackLua).tell()
	retryScript    = writer("retry", retryLua).tell()
	buryScript     = writer("bury", buryLua).tell()
	renewScript    = writer("renew", renewLua)
	reapScript     = writer("reap", reapLua)
	requeueScript  = writer("requeue", requeueLua).tell()
	discardScript  = writer("discard", discardLua)
	windowScript   = newScript("window", commonLua, pageLua, windowLua)
	deadScript     = newScript("dead", commonLua, stateLua, pageLua, deadLua)
	lookupScript   = newScript("lookup", commonLua, stateLua, lookupLua)
	depthScript    = newScript("depth", commonLua, depthLua)
	nowScript      = newScript("now", commonLua, nowLua)
	probeScript    = newScript("check", commonLua, probeLua)
)

func newScript(name string, parts ...string) *script {
	src := strings.Join(parts, "\n")
	sum := sha1.Sum([]byte(src)) // Redis names scripts by it
	return &script{name: name, src: src, sha: hex.EncodeToString(sum[:])}
}

func writer(name, lua string) *script {
	s := newScript(name, commonLua, stateLua, transitionsLua, lua)
	s.writes = true
	return s
}

// tell makes s know whether an earlier copy may have been applied.
func (s *script) tell() *script {
	s.tellResent = true
	return s
}

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
}

var (
	//go:embed lua/common.lua
	commonLua string
	//go:embed lua/scores.lua
	scoresLua string
	//go:embed lua/state.lua
	stateLua string
	//go:embed lua/transitions.lua
	transitionsLua string
	//go:embed lua/page.lua
	pageLua string

	//go:embed lua/lone.lua
	loneLua string
	//go:embed lua/fast.lua
	fastLua string
	//go:embed lua/apply.lua
	applyLua string
	//go:embed lua/flush.lua
	flushLua string
	//go:embed lua/reap.lua
	reapLua string

	//go:embed lua/window.lua
	windowLua string
	//go:embed lua/dead.lua
	deadLua string
	//go:embed lua/lookup.lua
	lookupLua string
	//go:embed lua/depth.lua
	depthLua string
	//go:embed lua/epoch.lua
	epochLua string
	//go:embed lua/now.lua
	nowLua string
	//go:embed lua/turn.lua
	turnLua string
	//go:embed lua/probe.lua
	probeLua string
)

// The scripts. They are values that nobody changes.
var (
	flushScript  = writer("flush", loneLua, commonLua, fastLua, "local function slow(now)", scoresLua, stateLua, transitionsLua, applyLua, "end", flushLua)
	reapScript   = writer("reap", commonLua, scoresLua, stateLua, transitionsLua, reapLua)
	windowScript = newScript("window", commonLua, scoresLua, pageLua, windowLua)
	deadScript   = newScript("dead", commonLua, scoresLua, stateLua, pageLua, deadLua)
	lookupScript = newScript("lookup", commonLua, scoresLua, stateLua, lookupLua)
	depthScript  = newScript("depth", commonLua, depthLua)
	epochScript  = newScript("epoch", commonLua, epochLua)
	nowScript    = newScript("now", commonLua, nowLua)
	takeScript   = writer("taketurn", commonLua, turnLua)
	endScript    = writer("endturn", commonLua, turnLua)
	probeScript  = newScript("check", commonLua, probeLua)
)

func newScript(name string, parts ...string) *script {
	src := strings.Join(parts, "\n")
	sum := sha1.Sum([]byte(src)) // Redis names scripts by it
	return &script{name: name, src: src, sha: hex.EncodeToString(sum[:])}
}

func writer(name string, parts ...string) *script {
	s := newScript(name, parts...)
	s.writes = true
	return s
}

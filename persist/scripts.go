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
	//go:embed lua/state.lua
	stateLua string
	//go:embed lua/transitions.lua
	transitionsLua string
	//go:embed lua/page.lua
	pageLua string

	//go:embed lua/fast.lua
	fastLua string
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
	//go:embed lua/probe.lua
	probeLua string
)

// The scripts. They are values that nobody changes.
var (
	flushScript  = writer("flush", fastLua, flushLua)
	reapScript   = writer("reap", reapLua)
	windowScript = newScript("window", commonLua, pageLua, windowLua)
	deadScript   = newScript("dead", commonLua, stateLua, pageLua, deadLua)
	lookupScript = newScript("lookup", commonLua, stateLua, lookupLua)
	depthScript  = newScript("depth", commonLua, depthLua)
	epochScript  = newScript("epoch", commonLua, epochLua)
	nowScript    = newScript("now", commonLua, nowLua)
	probeScript  = newScript("check", commonLua, probeLua)
)

func newScript(name string, parts ...string) *script {
	src := strings.Join(parts, "\n")
	sum := sha1.Sum([]byte(src)) // Redis names scripts by it
	return &script{name: name, src: src, sha: hex.EncodeToString(sum[:])}
}

func writer(name string, lua ...string) *script {
	s := newScript(name, append([]string{commonLua, stateLua, transitionsLua}, lua...)...)
	s.writes = true
	return s
}

package persist

import (
	"fmt"
	"regexp"
)

// DefaultNamespace is the Namespace of empty Options.
const DefaultNamespace = "orderwheel"

// namespaceRE keeps braces out: the first pair in a key is its hash tag.
var namespaceRE = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,64}$`)

// keys are the names of one shard's keys. All stand under one hash tag, so that
// a script may touch them together on a Cluster.
type keys struct {
	due     string // ZSet: id, score = due ms
	running string // ZSet: id, score = end of the lease in ms
	claims  string // hash: id -> record
	dead    string // ZSet: id, score = when it was buried in ms
	reasons string // hash: id -> record

	sessions string // hash: session -> number and answer of its last flush
	shards   string // string: how many shards there are
	epoch    string // string: a counter that only rises

	reconcile string // string with a TTL: whose turn it is to reconcile; of the first shard
}

// list returns the keys as KEYS of a script, in the order of lua/common.lua.
func (k keys) list() []any {
	return []any{k.due, k.running, k.claims, k.dead, k.reasons, k.sessions, k.shards, k.epoch, k.reconcile}
}

// shardKeys returns the keys of one shard.
func shardKeys(namespace string, number int) keys {
	tag := fmt.Sprintf("{%s:%d}", namespace, number)
	return keys{
		due: tag + ":due", running: tag + ":running", claims: tag + ":claims",
		dead: tag + ":dead", reasons: tag + ":reasons", sessions: tag + ":sessions",
		shards: tag + ":shards", epoch: tag + ":epoch", reconcile: tag + ":reconcile",
	}
}

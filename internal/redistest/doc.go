// Package redistest starts private Redis servers for tests: one redis-server
// on a free loopback port in a folder of its own, a replica of it, Sentinels that
// watch them, a Cluster; or a miniredis in the process. Only tests import it.
//
//	Start          one server, to be killed, paused, restarted
//	StartReplica   a replica of one; Promote, ReplicaOf and Failover change their roles
//	StartSentinels Sentinels that promote a replica when its primary is down
//	StartCluster   a Cluster, whose slots can be moved, also half way
//	Mini           a miniredis
//
// All of them end with the test that has started them.
//
// A test that needs redis-server is skipped, loudly, where the binary is not
// installed; with ORDERWHEEL_REQUIRE_SERVERS=1 it fails instead, so that a CI
// machine cannot skip by accident. ORDERWHEEL_REDIS_SERVER names another binary: a later
// Redis, or Valkey.
package redistest

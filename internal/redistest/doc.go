// Package redistest starts private Redis servers for tests: one redis-server
// on a free loopback port in a folder of its own, or a miniredis in the
// process. Only tests import it.
//
// A test that needs redis-server is skipped, loudly, where the binary is not
// installed; with ORDERWHEEL_REQUIRE_SERVERS=1 it fails instead, so that a CI
// machine cannot skip by accident.
package redistest

#!/bin/sh
# Measures the engine beside what the server can do at best, beside a poller and beside
# other libraries, each on a redis-server of its own with an append-only file, and
# prints the medians. All take turns, so that a slow minute of the machine meets all
# of them.
#
#   bench/engine.sh                5 rounds, about 30 minutes
#   ROUNDS=1 bench/engine.sh       one round
#   bench/engine.sh -short         small sizes: shows only that it works
set -eu
cd "$(dirname "$0")/.."
rounds=${ROUNDS:-5}
bin="${TMPDIR:-/tmp}/orderwheel-bench.$$"
trap 'rm -f "$bin" "$bin.peers"' EXIT
go test -c -o "$bin" ./bench
go test -C bench/peers -c -o "$bin.peers" .
short=
[ "${1:-}" = -short ] && { short=-test.short rounds=1; }
{
	i=0
	while [ "$i" -lt "$rounds" ]; do
		i=$((i + 1))
		"$bin" $short -test.run '^$' -test.timeout 20m -test.bench '^Benchmark(Engine|Poller)$' -test.benchtime 1x || echo FAIL
		"$bin.peers" $short -test.run '^$' -test.timeout 20m -test.bench . -test.benchtime 1x || echo FAIL
		echo ok
	done
} | go run ./bench/enginetable

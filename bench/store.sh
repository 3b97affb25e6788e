#!/bin/sh
# Measures the store beside what one would write by hand and what the server can do
# at best, on a redis-server of its own with an append-only file, and prints the
# medians. All take turns, so that a slow minute of the machine meets all of them.
#
#   bench/store.sh                 5 rounds, some minutes
#   ROUNDS=1 bench/store.sh        one round
#   bench/store.sh -short          few ids: shows only that it works
set -eu
cd "$(dirname "$0")/.."
rounds=${ROUNDS:-5}
bin="${TMPDIR:-/tmp}/orderwheel-bench.$$"
go test -c -o "$bin" ./bench
trap 'rm -f "$bin"' EXIT
ops=50000x
[ "${1:-}" = -short ] && { ops=2000x rounds=1; }
{
	i=0
	while [ "$i" -lt "$rounds" ]; do
		i=$((i + 1))
		"$bin" -test.run '^$' -test.timeout 20m -test.bench '^Benchmark(Store|Redis|Pages|Lone)$' -test.benchtime "$ops" || echo FAIL
		echo ok
	done
} | go run ./bench/storetable

#!/bin/sh
# Measures the wheels beside each other and prints a table: medians, and ratios
# against russellluo. The engines take turns, so that a slow minute of the machine
# meets all of them.
#
#   bench/wheel.sh                 5 rounds, about 30 minutes, 3 GB of memory
#   ROUNDS=1 bench/wheel.sh        one round
#   bench/wheel.sh -short          small sizes: shows only that it works
set -eu
cd "$(dirname "$0")/.."
rounds=${ROUNDS:-5}
go test -c -o "${TMPDIR:-/tmp}/orderwheel-bench.$$" ./bench
trap 'rm -f "${TMPDIR:-/tmp}/orderwheel-bench.$$"' EXIT
# So many operations that what the rivals allocate is collected too.
short= ops=2000000x
[ "${1:-}" = -short ] && { short=-test.short ops=20000x rounds=1; }
{
	i=0
	while [ "$i" -lt "$rounds" ]; do
		i=$((i + 1))
		"${TMPDIR:-/tmp}/orderwheel-bench.$$" $short -test.run '^$' -test.timeout 20m \
			-test.bench '^BenchmarkWheel$' -test.benchtime "$ops" || echo FAIL
		"${TMPDIR:-/tmp}/orderwheel-bench.$$" $short -test.run '^$' -test.timeout 20m \
			-test.bench '^BenchmarkWheel(Fire|Storm)$' -test.benchtime 1x || echo FAIL
		echo ok
	done
} | go run ./bench/wheeltable

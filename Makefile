# What developers run is what CI runs. Any variable below can be set on the
# command line: make bench BENCH=Schedule
SHELL := /usr/bin/env bash -euo pipefail
.DEFAULT_GOAL := help

GOTEST    ?= go test
BENCH     ?= .
BENCHTIME ?= 1s
FUZZTIME  ?= 30s
DRILL     ?= -orders 7000 -kills 10 -redis-kills 2
SOAK      ?= -d 30m

# The tests that are not built under -race: they compute for long, ten times as long there, and what
# they have of races others have, too.
UNRACED = $$(grep -rl '^//go:build !race' --include='*_test.go' persist wheel order/sqlstore | xargs grep -hoP '^func \KTest\w+' | paste -sd '|')

# The tests of sqlstore that let many orders race: under -race, where SQLite is slow, they are few.
RACES = $$(awk '/^func /{t=$$2; sub(/\(.*/,"",t)} /races\(\)/ && t ~ /^Test/ {print t}' order/sqlstore/*_test.go | sort -u | paste -sd '|')

# Nested modules with tests of their own.
NESTED := $(patsubst %/go.mod,%,$(wildcard bench/*/go.mod))

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-20s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: test
test: servers ## run all tests under -race; as root, first install the servers that they need
	ORDERWHEEL_REQUIRE_SERVERS=1 $(GOTEST) -race -timeout 20m ./... ./.ci/gotest
	ORDERWHEEL_REQUIRE_SERVERS=1 $(GOTEST) -run "^($(UNRACED)|$(RACES))$$" -timeout 20m ./persist ./wheel ./order/sqlstore
	@for dir in $(NESTED); do ORDERWHEEL_REQUIRE_SERVERS=1 go test -C $$dir -race ./...; done

.PHONY: test-long
test-long: servers ## run all tests at their full length
	ORDERWHEEL_REQUIRE_SERVERS=1 ORDERWHEEL_LONG=1 $(GOTEST) -race -timeout 2h ./...
	ORDERWHEEL_REQUIRE_SERVERS=1 ORDERWHEEL_LONG=1 $(GOTEST) -run "^($(UNRACED))$$" -timeout 2h ./persist ./wheel ./order/sqlstore
	@for dir in $(NESTED); do ORDERWHEEL_REQUIRE_SERVERS=1 ORDERWHEEL_LONG=1 go test -C $$dir -race -timeout 2h ./...; done

.PHONY: lint
lint: ## check the format, go vet, staticcheck, and that each go.mod is tidy
	@out=$$(gofmt -l .); test -z "$$out" || { echo "not gofmt-ed:" $$out; exit 1; }
	go vet ./... ./.ci/gotest
	go tool -modfile=tools/go.mod staticcheck ./... ./.ci/gotest
	@for dir in $(NESTED); do echo "go vet, staticcheck # in $$dir"; (cd $$dir && go vet ./... && go tool -modfile=$(CURDIR)/tools/go.mod staticcheck ./...); done
	@for dir in . tools $(NESTED); do echo "go mod tidy -diff # in $$dir"; (cd $$dir && go mod tidy -diff); done

.PHONY: bench
bench: ## run the benchmarks (BENCH: which, BENCHTIME: how long each)
	go test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem ./...

.PHONY: bench-wheel
bench-wheel: ## measure the wheels beside each other: a table with the ratios against russellluo, about 30 minutes
	@bench/wheel.sh $(BENCHWHEEL)

.PHONY: bench-store
bench-store: servers ## measure the store beside plain Redis: a table with the ratios, some minutes
	@bench/store.sh $(BENCHSTORE)

.PHONY: bench-engine
bench-engine: servers ## measure the whole engine beside Redis, a poller and other libraries: about 30 minutes
	@bench/engine.sh $(BENCHENGINE)

.PHONY: schemes
schemes: servers ## run the ways that articles on order timeouts teach beside orderwheel: some 20 minutes (SCHEMES: flags)
	go run ./bench/schemes $(SCHEMES)

.PHONY: russellluo-deadlock
russellluo-deadlock: ## hang RussellLuo's timing wheel, and show how
	go run ./bench/deadlock

.PHONY: drill
drill: servers ## kill -9 workers and Redis over and over, and audit what is left (DRILL: flags)
	go run ./examples/drill $(DRILL)

.PHONY: soak
soak: servers ## run the engine under mixed load for 30 minutes: nothing may grow (SOAK: flags)
	go run ./bench/soak $(SOAK)

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME
	@go test -list '^Fuzz' ./... | awk '/^Fuzz/ { f[n++] = $$1 } /^ok/ { for (i = 0; i < n; i++) print $$2, f[i]; n = 0 }' | \
	while read -r pkg target; do go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$pkg; done

.PHONY: servers
servers:
	@.ci/servers

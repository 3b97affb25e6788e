# Targets of bench, for the Makefile to include.

.PHONY: bench-wheel bench-wheel-short russellluo-deadlock fuzz-wheel

bench-wheel: ## the wheels beside each other: medians of 5, and ratios (half an hour, 3 GB)
	bench/wheel.sh

bench-wheel-short: ## the same at small sizes: shows only that it works
	bench/wheel.sh -short

russellluo-deadlock: ## hang RussellLuo's timing wheel and show the goroutines (at most 1 minute)
	go run ./bench/deadlock

FUZZTIME ?= 60s
fuzz-wheel: ## fuzz the own wheel against the model
	go test ./wheel -run '^$$' -fuzz '^FuzzWheel$$' -fuzztime $(FUZZTIME)

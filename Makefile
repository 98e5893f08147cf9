.PHONY: check test lint fmt bench model mutants versions faults large soak screenshots

# Everything that a change must pass; CI runs the same script.
check:
	.ci/run

test:
	go test -race ./...
	cd web/browsertest && go test -race ./...

lint:
	.ci/lint run ./...
	cd web/browsertest && ../../.ci/lint run ./...

fmt:
	.ci/lint fmt

bench:
	go test -run '^$$' -bench . -benchtime 1x -timeout 60m ./internal/bench
	go test -run '^$$' -bench . ./jobs/schedule ./lockrepo

# The protocol as a model, searched exhaustively; needs spin and gcc.
model:
	docs/model/run.sh

# Each patch breaks one rule of the protocol and must turn the test that it names red; two minutes or so.
# make mutants NAME=guard-off tries one.
mutants:
	go run ./internal/mutants $(NAME)

# The tests that touch SQL on Postgres 14 to 18, fetched from npm; three quarters of an hour. make versions ONLY="14 18" takes two.
versions:
	.ci/versions $(ONLY)

# Every fault five times, to docs/faults.md, and a long storm over the lanes; two minutes or so. FAULTS=-faults.seed=7 takes
# another seed than the date.
faults:
	go test -count=1 -timeout 20m -run TestAFaultIsRecoveredFromAndLosesNothing ./internal/faults -faults.write=../../docs/faults.md $(FAULTS)
	go test -count=1 -v -run 'TestTheLanesDrainAfterAStorm|TestWithoutTheBackstopAStormStrandsPeriods' ./jobs -chaos=12s

# Ten million finished runs (CI has a twentieth): planner, start and all lists read a bounded part of it, in 50 ms at most.
# A quarter of an hour and 20 GB in the temporary directory. Then every page beside two million runs, 100,000 locks and more than
# a million leases: 200 ms and 200 KB at most.
large:
	go test -count=1 -v -timeout 60m -run TestALongHistorySlowsNothingDown ./internal/bench -large=10000000
	go test -count=1 -v -timeout 60m -run TestEveryPageIsBoundedBesideALongHistory ./internal/bench -pages=2000000

# The pictures of the README and the docs, light and dark, from a run of pawl demo; a minute.
screenshots:
	cd web/browsertest && go run ./shots

# Thirty rounds of each example instead of two, to docs/faults.md: workers are killed and paused all the time; a quarter of an
# hour. SEED=1 takes another seed than the date.
SEED ?= $(shell date +%Y%m%d)
soak:
	go test -count=1 -v -p 1 -timeout 60m -run 'Once|Storm|Leader' ./examples/payout ./examples/report ./examples/stock ./examples/leader \
		-rounds=30 -seed=$(SEED) -figures=../../docs/faults.md

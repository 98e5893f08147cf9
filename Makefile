.PHONY: check test lint fmt bench model mutants

# Everything that a change must pass; CI runs the same script.
check:
	.ci/run

test:
	go test -race ./...

lint:
	.ci/lint run ./...

fmt:
	.ci/lint fmt

bench:
	go test -run '^$$' -bench . ./...

# The protocol as a model, searched exhaustively; needs spin and gcc.
model:
	docs/model/run.sh

# Each patch breaks one rule of the protocol and must turn the test that it names red; some four minutes.
# make mutants NAME=guard-off tries one.
mutants:
	go run ./internal/mutants $(NAME)

.PHONY: check test lint fmt bench

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

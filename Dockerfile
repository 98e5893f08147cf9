# One static binary and nothing else: no shell, no package manager, no root. It is the command, with the page; jobs of
# yours are a binary of your own, for which this file is a pattern.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# The time zones are in the binary: jobs/schedule brings its own.
RUN CGO_ENABLED=0 GOFLAGS=-buildvcs=false go build -trimpath -ldflags='-s -w' -o /out/pawl ./cmd/pawl

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/pawl /pawl
USER 65532:65532
EXPOSE 8399
ENTRYPOINT ["/pawl"]

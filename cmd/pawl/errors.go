package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"pawl/fence"
	"pawl/internal/pgdev"
	"pawl/jobs"
	"pawl/jobs/schedule"
	"pawl/lockrepo"
	"pawl/lockrepo/approvals"
	"pawl/migrations"
)

// The exit codes.
const (
	codeOK = iota
	codeFailed
	codeUsage
	codeConflict
	codeUnreachable
)

// coded is an error with its exit code.
type coded struct {
	code int
	err  error
}

func (e *coded) Error() string { return e.err.Error() }
func (e *coded) Unwrap() error { return e.err }

func usage(format string, args ...any) error {
	return &coded{codeUsage, fmt.Errorf(format, args...)}
}

func conflict(format string, args ...any) error {
	return &coded{codeConflict, fmt.Errorf(format, args...)}
}

// errSaid ends a command with its code when everything has been said.
var errSaid = errors.New("")

func said(code int) error { return &coded{code, errSaid} }

// codeOf finds the exit code that an error stands for.
func codeOf(err error) int {
	var own *coded
	switch {
	case err == nil:
		return codeOK
	case errors.As(err, &own):
		return own.code
	case is(err, jobs.ErrUnknownJob, jobs.ErrUnknownPeriod, jobs.ErrNoReason, jobs.ErrTooMany, jobs.ErrRetire, jobs.ErrParam, jobs.ErrState, jobs.ErrNoArtifact, jobs.ErrArtifactName, lockrepo.ErrNotFound, lockrepo.ErrInput, approvals.ErrNotFound, pgdev.ErrNoBinaries), wrongInput(err):
		return codeUsage
	case is(err, lockrepo.ErrHeld, lockrepo.ErrNotHeld, lockrepo.ErrEnded, fence.ErrStale, fence.ErrUnfenced,
		fence.ErrOtherLock, fence.ErrOtherDatabase, jobs.ErrComplete, jobs.ErrRunning,
		jobs.ErrNoOutput, jobs.ErrArtifactGone, jobs.ErrArtifactChanged, jobs.ErrPaused, jobs.ErrNotPaused, jobs.ErrPeriodState,
		approvals.ErrSamePerson, approvals.ErrNotApprover, approvals.ErrNotOperator, approvals.ErrExpired, approvals.ErrDecided):
		return codeConflict
	}
	return codeOfDatabase(err)
}

func is(err error, targets ...error) bool {
	for _, t := range targets {
		if errors.Is(err, t) {
			return true
		}
	}
	return false
}

func wrongInput(err error) bool {
	var (
		config   *jobs.ConfigError
		field    *schedule.FieldError
		missing  *migrations.NotMigratedError
		old      *migrations.TooOldError
		unparsed *pgconn.ParseConfigError
	)
	return errors.As(err, &config) || errors.As(err, &field) || errors.As(err, &missing) || errors.As(err, &old) || errors.As(err, &unparsed)
}

func codeOfDatabase(err error) int {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch {
		case pg.Code == "42501" || pg.Code == "42P01" || pg.Code == "3F000" || pg.Code == "3D000" || strings.HasPrefix(pg.Code, "28"):
			return codeUsage
		case strings.HasPrefix(pg.Code, "57P") || strings.HasPrefix(pg.Code, "08") || pg.Code == "53300":
			return codeUnreachable
		}
		return codeFailed
	}
	var connect *pgconn.ConnectError
	var network net.Error
	if errors.As(err, &connect) || errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) {
		return codeUnreachable
	}
	return codeFailed
}

// sentence is what people read: one line, without the package's name and without a password.
func sentence(err error) string {
	s := err.Error()
	switch pg := (*pgconn.PgError)(nil); {
	case errors.Is(err, fence.ErrOtherDatabase):
		s = "this database was restored from another server: if this copy may run what it owes, say so with: pawl adopt"
	case errors.Is(err, lockrepo.ErrNotFound):
		s += "; list them with: pawl lock ls"
	case errors.Is(err, jobs.ErrNoArtifact):
		s += "; list them with: pawl artifact ls"
	case errors.Is(err, approvals.ErrNotFound):
		s += "; list them with: pawl approval ls"
	case !errors.As(err, &pg):
	case pg.Code == "42P01" || pg.Code == "3F000":
		s = pg.Message + "; if pawl's schema is meant, run: pawl migrate up"
	case pg.Code == "42501":
		s = pg.Message + "; use a role that may, the grants are printed by: pawl migrate sql --roles"
	default:
		s = strings.ReplaceAll(s, pg.Error(), pg.Message) // without the SQLSTATE
	}
	for _, room := range []string{"jobs: ", "lockrepo: ", "keys: ", "approvals: ", "fence: ", "migrations: check: ", "migrations: ", "pgdev: ", "web: ", "settlement: "} {
		s = strings.TrimPrefix(s, room)
	}
	return mask(strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; "))
}

var (
	passwordInURL  = regexp.MustCompile(`(://[^/?#\s:@]*:)[^\s]*@`)
	passwordInPair = regexp.MustCompile(`(?i)\b((?:pass(?:word|file)?|sslpassword)\s*=\s*)('(?:[^'\\]|\\.)*'?|[^\s&'"` + "`" + `]+)`)
)

// mask takes passwords out of connection strings that an error quotes.
func mask(s string) string {
	s = passwordInURL.ReplaceAllString(s, "${1}xxxxx@")
	return passwordInPair.ReplaceAllString(s, "${1}xxxxx")
}

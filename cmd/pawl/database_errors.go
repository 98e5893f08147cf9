package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const urlForm = "postgres://user@host:5432/name"

// choices are the parameters whose value is one of a few words.
func choices() map[string][]string {
	return map[string][]string{
		"sslmode":                 {"disable", "allow", "prefer", "require", "verify-ca", "verify-full"},
		"sslnegotiation":          {"postgres", "direct"},
		"target_session_attrs":    {"any", "read-write", "read-only", "primary", "standby", "prefer-standby"},
		"channel_binding":         {"disable", "prefer", "require"},
		"default_query_exec_mode": {"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"},
	}
}

// badURL says what in the connection string can't be read.
func badURL(dsn string, err error) error {
	dsn = mask(dsn) // a password that isn't escaped may look like a parameter
	for name, words := range choices() {
		if value := parameter(dsn, name); value != "" && !slices.Contains(words, value) {
			return usage("%s in the database URL is %q: use %s or %s", name, value, strings.Join(words[:len(words)-1], ", "), words[len(words)-1])
		}
	}
	for _, name := range []string{
		"connect_timeout", "pool_max_conns", "pool_min_conns", "pool_min_idle_conns", "statement_cache_capacity", "description_cache_capacity",
	} {
		if value := parameter(dsn, name); value != "" && notNumber(value) {
			return usage("%s in the database URL is %q: use a whole number", name, value)
		}
	}
	var parse *pgconn.ParseConfigError
	reason := err.Error()
	if errors.As(err, &parse) {
		if inner := parse.Unwrap(); inner != nil {
			reason = inner.Error()
		}
	}
	// What it quotes may be a piece of a password that was not escaped.
	reason = strings.TrimPrefix(quoted.ReplaceAllString(reason, "…"), "cannot parse …: ")
	return usage("the database URL can't be read: %s; write it as in %s", mask(reason), urlForm)
}

func notNumber(s string) bool {
	n, err := strconv.Atoi(s)
	return err != nil || n < 0
}

var quoted = regexp.MustCompile("`[^`]*`|\"[^\"]*\"")

// parameter reads one out of a connection string that may be broken elsewhere.
func parameter(dsn, name string) string {
	if _, query, ok := strings.Cut(dsn, "?"); ok && strings.Contains(dsn, "://") {
		values, _ := url.ParseQuery(query) // what can be read of it
		return values.Get(name)
	}
	found := regexp.MustCompile(`(?:^|\s)` + name + `\s*=\s*'?([^\s']*)`).FindStringSubmatch(dsn)
	if found == nil {
		return ""
	}
	return found[1]
}

var refusedParameter = regexp.MustCompile(`(?:unsupported startup parameter(?: in options)?:|unrecognized configuration parameter) "?([^"\s]+)"?`)

// explain makes one sentence of what a connection failed with.
func explain(err error, cc *pgx.ConnConfig) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return explainUnreached(err, cc)
	}
	said := withoutSecret(pg.Message, cc)
	if found := refusedParameter.FindStringSubmatch(said); found != nil {
		return usage("the server at %s refuses the parameter %s: remove %s from the URL", where(cc), found[1], found[1])
	}
	switch {
	case pg.Code == "28P01":
		return usage("the server at %s refuses the password of user %q: correct it in the URL, PGPASSWORD or ~/.pgpass", where(cc), cc.User)
	case strings.HasPrefix(pg.Code, "28"):
		return usage("the server at %s refuses user %q: %s", where(cc), cc.User, said)
	case pg.Code == "3D000":
		return usage("the server at %s has no database %q: create it, or correct the URL", where(cc), cc.Database)
	case pg.Code == "42501":
		return usage("user %q has no right to use database %q at %s: %s", cc.User, cc.Database, where(cc), said)
	case strings.HasPrefix(pg.Code, "22"), strings.HasPrefix(pg.Code, "42"), pg.Code == "55P02":
		return usage("the server at %s refuses a parameter of the URL: %s; correct or remove it", where(cc), said)
	case pg.Code == "53300":
		return &coded{codeUnreachable, fmt.Errorf("the server at %s has no free connection: %s; raise max_connections, or use a pooler", where(cc), said)}
	}
	return &coded{codeUnreachable, fmt.Errorf("the server at %s takes no connection: %s", where(cc), said)}
}

// explainUnreached is for a server that said nothing: it isn't there, or both don't agree on TLS.
func explainUnreached(err error, cc *pgx.ConnConfig) error {
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	switch {
	case strings.Contains(err.Error(), "server refused TLS connection"), errors.As(err, &record):
		return usage("the server at %s speaks no TLS, which the URL demands: turn ssl on there, or say sslmode=disable where nobody can listen in", where(cc))
	case errors.As(err, new(x509.HostnameError)):
		return usage("the certificate of the server at %s is another name's: %s; correct the host in the URL", where(cc), last(err))
	case errors.As(err, &certificate):
		return usage("the certificate of the server at %s isn't trusted: %s; name its authority's file with sslrootcert=FILE", where(cc), last(err))
	case errors.As(err, &alert):
		return usage("the server at %s ends the TLS handshake: %s; see sslcert and sslkey in the URL", where(cc), last(err))
	}
	return &coded{codeUnreachable, fmt.Errorf("the database server at %s can't be reached: %s; start it, or correct the URL",
		where(cc), withoutSecret(last(err), cc))}
}

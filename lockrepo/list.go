package lockrepo

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
)

// Filter chooses locks. The zero Filter means the first 100 by name.
type Filter struct {
	Prefix string // of the name: what the caller may see
	Query  string // of the name too: what a person looks for. Names are found by how they begin, never by what is in them: no index could
	State  string // held, stale or free; empty: all
	After  string // names after this one: the last of the page before
	Limit  int    // 1 to 1000; 0: 100
}

const (
	defaultLimit = 100
	maxLimit     = 1000
)

func checkLimit(n int) (int, error) {
	n = cmp.Or(n, defaultLimit)
	if n < 1 || n > maxLimit {
		return 0, badInput("limit %d: give one between 1 and %d", n, maxLimit)
	}
	return n, nil
}

// $1 name, or the smallest that may be; with inPage also $2 after, $3 limit; with below $4: it is read from the index of the names,
// whose order is that of their bytes, or from that of the leased ones.
const (
	infoSQL = `
select l.name, s.state, coalesce(l.holder, ''), coalesce(l.key, ''), l.token, l.acquired_at, l.renewed_at, l.expires_at,
       coalesce(l.ttl, '0'), coalesce(r.job, ''), coalesce(r.key, ''), l.beats, l.longest_gap, clock_timestamp()
  from pawl.locks l
 cross join lateral (select case when l.grant_id is null then 'free' when l.expires_at > clock_timestamp() then 'held' else 'stale' end) s(state)
  left join pawl.runs r on r.lock = l.name and r.ended_at is null and r.token = l.token
`
	byName   = ` where l.name = $1::text`
	inPage   = ` where l.name >= $1::text and l.name > $2::text`
	below    = ` and l.name < $4::text`
	leased   = ` and l.grant_id is not null and s.state = `
	nameSort = ` order by l.name limit $3::int`
)

// List returns locks by name, byte by byte.
func (r *Repo) List(ctx context.Context, f Filter) ([]Info, error) {
	sql, args, err := f.sql()
	if err != nil {
		return nil, fmt.Errorf("lockrepo: list: %w", err)
	}
	if sql == "" {
		return []Info{}, nil
	}
	return r.infos(ctx, sql, args...)
}

// sql is empty where no name can begin with both Prefix and Query.
func (f Filter) sql() (sql string, args []any, err error) {
	n, err := checkLimit(f.Limit)
	if err == nil {
		err = checkTexts("prefix", f.Prefix, "query", f.Query, "after", f.After)
	}
	if err != nil {
		return "", nil, err
	}
	sql = infoSQL + inPage
	switch f.State {
	case "":
	case Held, Stale:
		sql += leased + "'" + f.State + "'"
	case Free:
		sql += ` and l.grant_id is null`
	default:
		return "", nil, badInput("state %q: give held, stale or free", f.State)
	}
	prefix := f.Prefix
	if len(f.Query) > len(prefix) {
		prefix = f.Query
	}
	if !strings.HasPrefix(prefix, f.Prefix) || !strings.HasPrefix(prefix, f.Query) {
		return "", nil, nil
	}
	args = []any{prefix, f.After, n}
	if end := afterAll(prefix); end != "" {
		sql, args = sql+below, append(args, end)
	}
	return sql + nameSort, args, nil
}

// afterAll is the smallest text after all that begins with prefix; empty: there
// is none.
func afterAll(prefix string) string {
	for prefix != "" {
		last, size := utf8.DecodeLastRuneInString(prefix)
		prefix = prefix[:len(prefix)-size]
		switch {
		case last == utf8.MaxRune:
			continue
		case last+1 == 0xd800: // UTF-8 has no surrogates
			last = 0xdfff
		}
		return prefix + string(last+1)
	}
	return ""
}

// Show returns one lock, or [ErrNotFound].
func (r *Repo) Show(ctx context.Context, lock string) (Info, error) {
	if err := checkName(lock); err != nil {
		return Info{}, fmt.Errorf("lockrepo: show: %w", err)
	}
	all, err := r.infos(ctx, infoSQL+byName, lock)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%w: %q", ErrNotFound, lock)
	}
	if err != nil {
		return Info{}, err
	}
	return all[0], nil
}

func (r *Repo) infos(ctx context.Context, sql string, args ...any) ([]Info, error) {
	out := []Info{} // [], not null, in JSON
	err := r.ask(ctx, query{sql, args, func(rows pgx.Rows) error {
		var i Info
		_, err := pgx.ForEachRow(rows, []any{
			&i.Lock, &i.State, &i.Holder, &i.Key, &i.Token, &i.AcquiredAt, &i.RenewedAt, &i.ExpiresAt,
			(*time.Duration)(&i.TTL), &i.Job, &i.Period, &i.Beats, (*time.Duration)(&i.LongestGap), &i.ReadAt,
		}, func() error {
			out = append(out, i.utc())
			return nil
		})
		return err
	}})
	if err != nil {
		return nil, fmt.Errorf("lockrepo: list: %w", err)
	}
	return out, nil
}

// utc also copies the times, which the next row would overwrite.
func (i Info) utc() Info {
	i.AcquiredAt, i.RenewedAt, i.ExpiresAt = inUTC(i.AcquiredAt), inUTC(i.RenewedAt), inUTC(i.ExpiresAt)
	i.ReadAt = i.ReadAt.UTC()
	return i
}

func inUTC(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}

var errBefore = badInput("before is negative: give the last one of the page before, or 0")

package lockrepo

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Span is one lease as a timeline shows it. Times are UTC by the database's
// clock.
type Span struct {
	Lock       string     `json:"lock"`
	Token      int64      `json:"token"`
	Holder     string     `json:"holder"`
	Key        string     `json:"key"`
	RequestID  string     `json:"request_id"`  // that acquired it, empty if it had none
	AcquiredAt time.Time  `json:"acquired_at"` // where it isn't known, the end
	EndedAt    *time.Time `json:"ended_at"`    // nil: it is live
	ExpiresAt  *time.Time `json:"expires_at"`  // when it ends, or would have ended
	RenewedAt  *time.Time `json:"renewed_at"`  // the last grant or renewal; nil once its end was written down
	How        string     `json:"how"`         // held, expired (nobody has taken the lock), released, taken_over, reacquired or forced
	Successor  *int64     `json:"successor"`   // the next token, nil if none is known
	Beats      int        `json:"beats"`
	LongestGap Seconds    `json:"longest_gap"`

	Refusals     []Mark      `json:"refusals"`      // writes under this token that were refused, after its end too: the newest 50, in the order of time
	RefusalsMore bool        `json:"refusals_more"` // there are older ones
	Checkpoints  []time.Time `json:"checkpoints"`   // of its run: the latest one, as long as no later run has written another
}

// Mark is a refused write on a timeline.
type Mark struct {
	At     time.Time `json:"at"`
	Target string    `json:"target"`
	Late   Seconds   `json:"late"` // after the lease's end; 0: not known, or not late
}

// SpanFilter chooses spans. The zero SpanFilter means the latest of the 12
// locks that were active last.
type SpanFilter struct {
	Lock  string    // empty: of the locks that were active last, by To
	From  time.Time // what ended before it is left out; zero: nothing
	To    time.Time // what was acquired then or later is left out; zero: nothing
	Locks int       // how many, without Lock: 1 to 100; 0: 12
	Limit int       // of each lock, the newest: 1 to 1000; 0: 100
}

const (
	defaultLocks = 12
	maxLocks     = 100
	maxMarks     = 50
)

// $1 from, $2 to, $3 how many. A lock with a live lease is active now, those acquired last first. Only the thousand ends next
// to To, and the first thousand leased locks, are looked at: a lock that is taken a thousand times a second may hide others.
const activeSQL = `
select a.lock from (
    select e.lock, e.ended_at as at, e.acquired_at from (
      select * from pawl.tenures t where t.ended_at < coalesce($2::timestamptz, 'infinity') order by t.ended_at desc limit 1000) e
     where e.ended_at >= coalesce($1::timestamptz, '-infinity')
    union all
    select e.lock, $2::timestamptz, e.acquired_at from (
      select t.lock, t.acquired_at from pawl.tenures t where t.ended_at >= $2::timestamptz order by t.ended_at limit 1000) e
     where e.acquired_at < $2::timestamptz
    union all
    select l.name, least(l.expires_at, clock_timestamp(), $2::timestamptz), l.acquired_at from (
      select * from pawl.locks where grant_id is not null order by name limit 1000) l
     where l.acquired_at < coalesce($2::timestamptz, 'infinity')
       and (l.expires_at >= coalesce($1::timestamptz, '-infinity') or l.expires_at > clock_timestamp())) a
 group by a.lock order by max(a.at) desc, max(a.acquired_at) desc, a.lock limit $3::int`

// $1 locks, $2 from, $3 to, $4 limit, $5 how many marks and one more. A lock's leases follow one another and its tokens grow: the
// newest before To is sought by halving the tokens, and then come those before it. An index by time would cost each lease's end.
const spansSQL = `
select s.lock, s.token, coalesce(s.holder, ''), coalesce(s.key, ''), coalesce(s.request_id, ''), s.acquired_at, s.ended_at, s.expires_at,
       s.renewed_at, s.how, s.successor, s.beats, s.longest_gap, m.ats, m.targets, m.lates,
       array(select c.at from pawl.runs r join pawl.checkpoints c on c.job = r.job and c.key = r.key and c.revision = r.revision
              where r.id = s.grant_id and c.token = s.token)
  from unnest($1::text[]) n (lock)
 cross join lateral (
    (with recursive seek (lo, hi) as (
        (select case when coalesce(t.acquired_at, t.ended_at) < coalesce($3::timestamptz, 'infinity') then t.token else 0 end, t.token
           from pawl.tenures t where t.lock = n.lock order by t.token desc limit 1)
      union all
        select case when p.at < $3::timestamptz then p.token else k.lo end, case when p.at < $3::timestamptz then k.hi else k.mid - 1 end
          from (select lo, hi, lo + (hi - lo + 1) / 2 as mid from seek where lo < hi) k
         cross join lateral (select t.token, coalesce(t.acquired_at, t.ended_at) as at from pawl.tenures t
                              where t.lock = n.lock and t.token >= k.mid order by t.token limit 1) p
     )
     select t.lock, t.token, t.grant_id, t.holder, t.key, t.request_id, coalesce(t.acquired_at, t.ended_at) as acquired_at, t.ended_at, t.expires_at,
            null::timestamptz as renewed_at, t.how, t.successor, t.beats, t.longest_gap
       from pawl.tenures t where t.lock = n.lock and t.token <= (select max(lo) from seek)
      order by t.token desc limit $4::int)
    union all
    select l.name, l.token, l.grant_id, l.holder, l.key, l.request_id, l.acquired_at, case when l.expires_at <= clock_timestamp() then l.expires_at end,
           l.expires_at, l.renewed_at, case when l.expires_at <= clock_timestamp() then 'expired' else 'held' end, null, l.beats, l.longest_gap
      from pawl.locks l where l.name = n.lock and l.grant_id is not null and l.acquired_at < coalesce($3::timestamptz, 'infinity')
    order by token desc limit $4::int) s
 cross join lateral (
    select array_agg(f.at order by f.id) as ats, array_agg(coalesce(f.target, '') order by f.id) as targets,
           array_agg((extract(epoch from coalesce(f.late_by, '0')) * 1000000)::bigint order by f.id) as lates
      from (select * from pawl.refusals f where f.lock = s.lock and f.token = s.token and not f.passed order by f.id desc limit $5::int) f) m
 where s.ended_at is null or s.ended_at >= coalesce($2::timestamptz, '-infinity')
 order by s.lock, s.token`

// Spans returns leases, live and ended, that overlap the time from From up to
// To, by lock and then by token, with the writes that were refused under each.
func (r *Repo) Spans(ctx context.Context, f SpanFilter) ([]Span, error) {
	n, err := f.check()
	if err != nil {
		return nil, fmt.Errorf("lockrepo: spans: %w", err)
	}
	locks := []string{f.Lock}
	if f.Lock == "" {
		if locks, err = r.active(ctx, f); err != nil {
			return nil, fmt.Errorf("lockrepo: spans: %w", err)
		}
	}
	out := []Span{}
	err = r.ask(ctx, query{spansSQL, []any{locks, known(f.From), known(f.To), n, maxMarks + 1}, func(rows pgx.Rows) (err error) {
		out, err = pgx.AppendRows(out, rows, span)
		return err
	}})
	if err != nil {
		return nil, fmt.Errorf("lockrepo: spans: %w", err)
	}
	return out, nil
}

func (f *SpanFilter) check() (limit int, err error) {
	if f.Lock != "" {
		if err := checkName(f.Lock); err != nil {
			return 0, err
		}
	}
	if f.Locks == 0 {
		f.Locks = defaultLocks
	}
	if f.Locks < 1 || f.Locks > maxLocks {
		return 0, badInput("locks %d: give a number between 1 and %d", f.Locks, maxLocks)
	}
	if err := checkTimes(f.From, f.To); err != nil {
		return 0, err
	}
	return checkLimit(f.Limit)
}

// active names the locks whose leases lived last.
func (r *Repo) active(ctx context.Context, f SpanFilter) (locks []string, err error) {
	err = r.ask(ctx, query{activeSQL, []any{known(f.From), known(f.To), f.Locks}, func(rows pgx.Rows) (err error) {
		locks, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	}})
	return locks, err
}

func span(row pgx.CollectableRow) (s Span, err error) {
	var ats []time.Time
	var targets []string
	var lates []int64
	err = row.Scan(&s.Lock, &s.Token, &s.Holder, &s.Key, &s.RequestID, &s.AcquiredAt, &s.EndedAt, &s.ExpiresAt,
		&s.RenewedAt, &s.How, &s.Successor, &s.Beats, (*time.Duration)(&s.LongestGap), &ats, &targets, &lates, &s.Checkpoints)
	s.AcquiredAt, s.EndedAt = s.AcquiredAt.UTC(), inUTC(s.EndedAt)
	s.ExpiresAt, s.RenewedAt = inUTC(s.ExpiresAt), inUTC(s.RenewedAt)
	s.Refusals = make([]Mark, len(ats))
	for i, at := range ats {
		s.Refusals[i] = Mark{at.UTC(), targets[i], Seconds(time.Duration(lates[i]) * time.Microsecond)}
	}
	if len(ats) > maxMarks {
		s.Refusals, s.RefusalsMore = s.Refusals[1:], true
	}
	for i, at := range s.Checkpoints {
		s.Checkpoints[i] = at.UTC()
	}
	return s, err
}

// checkTimes makes sure that from lies before to, where both are given.
func checkTimes(from, to time.Time) error {
	if !from.IsZero() && !to.IsZero() && !from.Before(to) {
		return badInput("from %s isn't before to %s: give an earlier from or a later to",
			from.UTC().Format(time.RFC3339Nano), to.UTC().Format(time.RFC3339Nano))
	}
	return nil
}

// known is t, or nil when it is zero: no bound.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

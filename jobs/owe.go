package jobs

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
)

const stateOpen = "open"

// How a period came to be owed.
const (
	originSchedule = "schedule"
	originTrigger  = "trigger"
	originBackfill = "backfill"
	originRerun    = "rerun"
)

// periodRow is a new row of periods.
type periodRow struct {
	Job       string          `json:"job"`
	Key       string          `json:"key"`
	Revision  int             `json:"revision"`
	Lock      string          `json:"lock"`
	State     string          `json:"state"`
	Reason    string          `json:"reason"`
	BlockedBy string          `json:"blocked_by"`
	Origin    string          `json:"origin"`
	Priority  int             `json:"priority"`
	StartAt   time.Time       `json:"start_at"`
	EndAt     time.Time       `json:"end_at"`
	At        time.Time       `json:"at"`
	LastAt    time.Time       `json:"last_at"`
	Ticks     int             `json:"ticks"`
	Most      int             `json:"most"`
	NotBefore *time.Time      `json:"not_before"`
	StartBy   *time.Time      `json:"start_by"`
	LateAt    *time.Time      `json:"late_at"`
	DueAt     *time.Time      `json:"due_at"`
	KeyRev    int             `json:"key_revision"` // 0: 1
	SendsAs   string          `json:"sends_as"`     // "": as the job's name
	Refused   int             `json:"refused"`
	Repeat    bool            `json:"repeat_effects"`
	Params    json.RawMessage `json:"params,omitempty"`
	Short     bool            `json:"short"` // it goes on with the job's last row, if that is a stretch of its kind
}

// insertPeriodsSQL is the only way into pawl.periods, but for shards (pawl.fan_out): for ticks, triggers, reruns and
// backfills alike. Ticks that are not owed are recorded all the same, with the reason. What is there under the job's former
// name is there.
const insertPeriodsSQL = `
with p as materialized (
  select * from jsonb_to_recordset($1::text::jsonb) as p(job text, key text, revision int, lock text, state text, reason text, blocked_by text,
         origin text, priority int, start_at timestamptz, end_at timestamptz, at timestamptz, last_at timestamptz, ticks int, most int,
         not_before timestamptz, start_by timestamptz, late_at timestamptz, due_at timestamptz, repeat_effects boolean,
         key_revision int, sends_as text, refused int, params jsonb, short boolean)
), longer as (
  update pawl.periods x set last_at = p.last_at, ticks = x.ticks + p.ticks
    from p cross join lateral (select y.job, y.key, y.revision from pawl.periods y
                                where y.job = p.job and y.origin = 'schedule' order by y.scheduled_at desc limit 1) y
   where p.short and x.job = y.job and x.key = y.key and x.revision = y.revision and x.state = p.state and x.reason = p.reason
     and x.scheduled_at < p.at and (x.state <> 'held' or x.ended_at is null)
  returning x.job, x.state, x.reason, p.ticks
), fresh as (
  insert into pawl.periods (job, key, revision, lock, state, reason, blocked_by, origin, priority, start_at, end_at, scheduled_at, last_at,
         ticks, max_attempts, not_before, start_by, late_at, due_at, repeat_effects, key_revision, sends_as, refused, params, waits, ended_at)
  select p.job, p.key, p.revision, p.lock, p.state, nullif(p.reason, ''), nullif(p.blocked_by, ''), p.origin, p.priority, p.start_at, p.end_at,
         p.at, case when p.ticks > 1 then p.last_at end, p.ticks, p.most, p.not_before, p.start_by, p.late_at, p.due_at, p.repeat_effects, greatest(p.key_revision, 1), nullif(p.sends_as, ''), p.refused, p.params,
         case p.state when 'open' then pawl.waits_for(p.job, p.key, p.at, p.origin) when 'held' then 'paused' end,
         case when p.state in ('missed', 'skipped') then clock_timestamp() end
    from p where not (p.short and p.job in (select l.job from longer l))
     and not exists (select from pawl.renames f join pawl.periods o on o.job = f.former and o.key = p.key where f.job = p.job and f.done_at is null)
   order by p.job, p.key
  on conflict (job, key, revision) do nothing
  returning job, state, reason, ticks, waits
)
select job, state, coalesce(reason, ''), ticks, coalesce(waits, '') from fresh
 union all select job, state, reason, ticks, '' from longer`

// owed is what became of a row.
type owed struct {
	job, state, reason string
	ticks              int
	waits              string
}

// queueOwe queues the insertion. The lanes of rows that are open have been entered.
func queueOwe(b *batch, rows []periodRow, into *[]owed) {
	text, err := json.Marshal(rows)
	if err != nil {
		panic(err) // strings, numbers and times of a sane year
	}
	b.Queue(insertPeriodsSQL, string(text)).Query(func(rows pgx.Rows) error {
		got, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (x owed, err error) {
			return x, row.Scan(&x.job, &x.state, &x.reason, &x.ticks, &x.waits)
		})
		*into = append(*into, got...)
		return err
	})
}

const (
	moveWatermarkSQL = `
update pawl.schedules s set watermark = w.at, next_at = w.next
  from unnest($1::text[], $2::timestamptz[], $3::timestamptz[]) as w(job, at, next) where s.job = w.job`

	// What runs or waits under locks whose jobs skip a tick then.
	blockersSQL = `
select l.lock, h.job || ' ' || h.key from unnest($1::text[]) l (lock) cross join lateral (
  select p.job, p.key from pawl.periods p
   where p.lock = l.lock and p.ended_at is null and p.waits is null and p.state in ('open', 'running')
   order by p.state = 'open', p.priority, p.scheduled_at, p.job, p.key limit 1) h`
)

// writePlan inserts the periods, makes the lane rule true and moves the watermarks. The caller holds the schedule rows. Lanes
// are entered for what is owed alone.
func writePlan(ctx context.Context, tx pgx.Tx, ps []*planned) (inserted []owed, err error) {
	if len(ps) == 0 {
		return nil, nil
	}
	blockers, err := enterSkipping(ctx, tx, ps)
	if err != nil {
		return nil, err
	}
	var rows []periodRow
	var jobs, locks []string
	var marks []time.Time
	var nexts []*time.Time
	for _, p := range ps {
		jobs, marks, nexts = append(jobs, p.Job), append(marks, p.watermark), append(nexts, p.next)
		for _, x := range p.rows(blockers[p.Lock]) {
			rows = append(rows, x)
			if x.State == stateOpen {
				locks = append(locks, x.Lock)
			}
		}
	}
	var b batch
	if len(locks) > 0 && blockers == nil {
		b.Queue(laneSQL, locks)
	}
	if len(rows) > 0 {
		queueOwe(&b, rows, &inserted)
	}
	b.Queue(moveWatermarkSQL, jobs, marks, nexts)
	if len(locks) > 0 {
		b.Queue(leaveSQL, locks)
	}
	return inserted, tx.SendBatch(ctx, &b).Close()
}

// enterSkipping enters all lanes at once and looks what runs or waits in those of jobs that skip a tick then. Nil: there is
// no such job, and nothing was entered.
func enterSkipping(ctx context.Context, tx pgx.Tx, ps []*planned) (map[string]string, error) {
	var locks, skipping []string
	for _, p := range ps {
		for _, t := range p.ticks {
			if !p.held && t.Reason == "" {
				locks = append(locks, p.lockOf(t.Period.Key))
			}
		}
		if p.Overlap == OverlapSkip && len(p.ticks) > 0 {
			skipping = append(skipping, p.Lock)
		}
	}
	if len(skipping) == 0 {
		return nil, nil
	}
	blockers := map[string]string{}
	var b batch
	b.Queue(laneSQL, locks)
	b.Queue(blockersSQL, skipping).Query(func(rows pgx.Rows) error {
		var lock, by string
		_, err := pgx.ForEachRow(rows, []any{&lock, &by}, func() error { blockers[lock] = by; return nil })
		return err
	})
	return blockers, tx.SendBatch(ctx, &b).Close()
}

// tally counts and logs what was planned.
func (r *Runner) tally(ctx context.Context, inserted []owed) {
	for _, x := range inserted {
		r.metrics.Periods.WithLabelValues(x.job, x.state, x.reason).Add(float64(x.ticks))
		if x.state != stateOpen && x.state != "held" { // who has paused a job knows
			r.log.WarnContext(ctx, "ticks will not run", "job", x.job, "state", x.state, "reason", x.reason, "ticks", x.ticks)
		}
	}
}

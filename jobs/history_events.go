package jobs

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/jobs/alert"
)

// EventFilter chooses events; empty fields choose all.
type EventFilter struct {
	Job    string
	Period string // with Job
	Kind   string // one of alert.Kinds
	Limit  int    // 1 to 1000; zero is 100
}

// eventColumns are what an event is read from: events e, schedules s.
const eventColumns = `
select e.id::text, e.kind, e.at, coalesce(e.app, ''), coalesce(e.job, ''), coalesce(s.definition ->> 'owner', ''), coalesce(e.period, ''),
       coalesce(e.revision, 0), coalesce(e.run::text, ''), coalesce(e.lock, ''), coalesce(e.token, 0), e.detail
  from pawl.events e left join pawl.schedules s on s.job = e.job`

// Events lists what people were told of, the latest first. A kind that doesn't exist is an [ErrState].
func (h *History) Events(ctx context.Context, f EventFilter) (events []alert.Event, err error) {
	const sql = eventColumns + `
 where (@job = '' or e.job = @job) and (@period = '' or e.period = @period) and (@kind = '' or e.kind = @kind)
 order by e.at desc, e.id limit @most`
	if err := oneOf("event", f.Kind, alert.Kinds()...); err != nil {
		return nil, err
	}
	err = h.read(ctx, "events", func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sql, pgx.NamedArgs{"job": f.Job, "period": f.Period, "kind": f.Kind, "most": limited(f.Limit)})
		if err != nil {
			return err
		}
		events, err = pgx.CollectRows(rows, scanEvent)
		return err
	})
	return events, err
}

func scanEvent(row pgx.CollectableRow) (e alert.Event, err error) {
	var detail []byte
	err = row.Scan(&e.ID, &e.Kind, &e.At, &e.App, &e.Job, &e.Owner, &e.Period, &e.Revision, &e.Run, &e.Lock, &e.Token, &detail)
	if err == nil {
		err = json.Unmarshal(detail, &e.Detail)
	}
	utc(&e.At)
	for key, v := range e.Detail { // which Postgres has written in the session's zone
		s, text := v.(string)
		if at, err := time.Parse(time.RFC3339Nano, s); text && err == nil && strings.HasSuffix(key, "_at") {
			e.Detail[key] = at.UTC()
		}
	}
	return e, err
}

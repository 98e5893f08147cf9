package jobs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"pawl/fence"
)

// RunEvent is one thing that happened to a run.
type RunEvent struct {
	At    time.Time `json:"at"`
	Kind  string    `json:"kind"` // acquired, beats, checkpoint, progress, expired, taken_over, refused, forced, ended, alert
	Text  string    `json:"text"` // one sentence
	Token int64     `json:"token"`
}

const (
	mostEvents = 200

	// Of a token with very many the first 10,001 are looked at.
	runRefusalsSQL = `
select at, coalesce(target, ''), coalesce(statement, ''), coalesce(extract(epoch from late_by), 0)::float8
  from (select * from pawl.refusals where lock = @lock and token = @token and not passed limit 10001) f
 order by at desc, id desc limit @most`

	// An event's subject names its run, its period, or the period's attempt. Refusals and stale claims are told by their own rows.
	runAlertsSQL = eventColumns + `
 where e.subject = any (@subjects) and (e.run is null or e.run = @id::text::uuid) and e.kind not in ('refusal', 'stale_claim')
 order by e.at desc, e.id limit @most`
)

// readEvents collects what rows tell of the run, the newest first.
func (d *RunDetail) readEvents(ctx context.Context, tx pgx.Tx, args pgx.NamedArgs) error {
	id, period := d.ID.String(), fmt.Sprintf("%s/%s/%d", d.Job, d.Key, d.Revision)
	args["subjects"] = []string{id, id + "/over", id + "/near", period, fmt.Sprintf("%s/%d", period, d.Attempt)}
	args["most"] = mostEvents + 1
	d.Events = slices.Concat(d.leaseEvents(), d.workEvents())
	rows, err := tx.Query(ctx, runRefusalsSQL, args)
	if err != nil {
		return err
	}
	var at time.Time
	var target, statement string
	var late float64
	_, err = pgx.ForEachRow(rows, []any{&at, &target, &statement, &late}, func() error {
		d.Events = append(d.Events, RunEvent{at, "refused", refusedText(target, statement, late), d.Token})
		return nil
	})
	if err != nil {
		return err
	}
	rows, err = tx.Query(ctx, runAlertsSQL, args)
	if err != nil {
		return err
	}
	alerts, err := pgx.CollectRows(rows, scanEvent)
	for _, e := range alerts {
		e.Owner = ""
		d.Events = append(d.Events, RunEvent{e.At, "alert", e.Text(), d.Token})
	}
	slices.SortStableFunc(d.Events, func(a, b RunEvent) int { return b.At.Compare(a.At) })
	d.EventsMore = len(d.Events) > mostEvents
	d.Events = d.Events[:min(len(d.Events), mostEvents)]
	return err
}

func refusedText(target, statement string, late float64) string {
	text := "A write was refused"
	if target != "" {
		text = "A write to " + target + " was refused"
	}
	if late > 0 {
		text += fmt.Sprintf(", %s after the lease ended", time.Duration(late*float64(time.Second)).Round(100*time.Millisecond))
	}
	if statement != "" {
		text += ": " + firstBytes(statement, 200)
	}
	return text
}

// leaseEvents are what became of the lease, the latest first.
func (d *RunDetail) leaseEvents() (events []RunEvent) {
	l := d.Lease
	add := func(at *time.Time, kind, format string, args ...any) {
		if at != nil {
			events = append(events, RunEvent{*at, kind, fmt.Sprintf(format, args...), d.Token})
		}
	}
	if l.How == "taken_over" && l.Successor != nil {
		by := l.SuccessorHolder
		if by == "" {
			by = "another holder"
		}
		add(l.SuccessorAt, "taken_over", "%s took the lock over with the token %s", by, fence.FormatSeq(*l.Successor))
	}
	switch l.How {
	case "expired", "taken_over":
		add(l.EndedAt, "expired", "The lease expired without a release")
	case "forced":
		add(l.EndedAt, "forced", "The lease was released by force")
	}
	if l.Beats > 0 {
		beats := "1 heartbeat"
		if l.Beats > 1 {
			beats = fmt.Sprintf("%d heartbeats", l.Beats)
		}
		add(cmp.Or(l.RenewedAt, l.EndedAt), "beats", "%s, longest gap %s", beats, l.LongestGap.Duration().Round(100*time.Millisecond))
	}
	return events
}

// workEvents are what the run did, the latest first.
func (d *RunDetail) workEvents() (events []RunEvent) {
	end := d.EndedAt
	if end != nil {
		text := "Ended: " + strings.ReplaceAll(d.State, "_", " ")
		if d.Error != "" {
			text += ": " + firstBytes(d.Error, 400)
		}
		events = append(events, RunEvent{*end, "ended", text, d.Token})
	}
	if at := cmp.Or(end, d.Lease.RenewedAt); d.Done != nil && at != nil {
		text := fmt.Sprintf("%d done", *d.Done)
		if d.Total != nil && *d.Total > 0 {
			text = fmt.Sprintf("%d of %d done", *d.Done, *d.Total)
		}
		events = append(events, RunEvent{*at, "progress", text, d.Token})
	}
	if d.CheckpointAt != nil && d.CheckpointToken == d.Token {
		events = append(events, RunEvent{*d.CheckpointAt, "checkpoint", "The last checkpoint was written", d.Token})
	}
	text := fmt.Sprintf("Attempt %d began: %s has the lock", d.Attempt, cmp.Or(d.Holder, d.Lease.Holder, "its holder"))
	if d.Resumed {
		text += ", and a checkpoint to go on from"
	}
	return append(events, RunEvent{d.StartedAt, "acquired", text, d.Token})
}

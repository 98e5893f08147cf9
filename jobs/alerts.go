package jobs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"pawl/jobs/alert"
)

const (
	alertQueue   = "pawl_alerts" // apart from the deliveries: a full house must still be able to say so
	alertWorkers = 4
	alertEvery   = 2 * time.Second
	alertDead    = 24 * time.Hour // an alert that could not be delivered for so long is given up
	alertFirst   = time.Second    // before the first repetition, doubled each time
	alertMost    = 15 * time.Minute
	alertTimeout = 30 * time.Second // one delivery, its database calls included
)

const (
	channelSQL = `insert into pawl.channels (name) values ($1) on conflict (name) do nothing`

	// $1 channel with its app, $2 kinds, $3 app, $4 the channel's own name, $5 River's kind. Events that belong to no app (locks) and
	// pawl's own are everybody's. A conflict is another replica that queues the same.
	queueAlertsSQL = `
with due as materialized (
  select e.id from pawl.events e left join pawl.schedules s on s.job = e.job
   where e.at >= greatest((select c.since from pawl.channels c where c.name = $1), (select clock_timestamp() - interval '1 day')) and e.kind = any ($2::text[]) and coalesce(e.app in ($3::text, '` + ownApp + `'), true)
     and coalesce(s.definition -> 'alerts' ? $4::text, true)
     and not exists (select from pawl.alerts a where a.event = e.id and a.channel = $1)
   order by e.at limit 100
), noted as (
  insert into pawl.alerts (event, channel) select id, $1::text from due order by id on conflict (event, channel) do nothing returning event
), queued as (
  insert into pawl.river_job (state, queue, kind, args, max_attempts)
  select 'available', '` + alertQueue + `', $5::text, jsonb_build_object('event', event, 'channel', $4::text), 1000 from noted
  returning id
)
select count(*), case when count(*) > 0 then pg_notify('pawl.river_insert', '{"queue":"` + alertQueue + `"}')::text end from queued`

	// River's own rescue is off: it has no business with deliveries.
	rescueAlertsSQL = `
update pawl.river_job set state = 'available', scheduled_at = clock_timestamp()
 where queue = '` + alertQueue + `' and state = 'running' and attempted_at < (select clock_timestamp() - interval '2 min')`

	eventOfSQL = eventColumns + ` where e.id = $1::text::uuid`
)

// alertArgs is the River job: tell this channel of this event.
type alertArgs struct {
	Event   string `json:"event"`
	Channel string `json:"channel"`

	kind string
}

// Kind is one River kind for each channel, so that only a replica fetches it that has the channel's URL and secret.
func (a alertArgs) Kind() string { return a.kind }

// alertKind is made of the app too: two apps may each have a channel of one name. River takes no spaces in a kind.
func alertKind(app, channel string) string {
	sum := sha256.Sum256([]byte(app))
	return "pawl_alert." + hex.EncodeToString(sum[:4]) + "." + channel
}

// checkChannels returns what is wrong with Config.Channels.
func checkChannels(channels []alert.Channel) error {
	seen := map[string]bool{}
	for _, c := range channels {
		if err := c.Check(); err != nil {
			return fmt.Errorf("jobs: %w", err)
		}
		if seen[c.Name] {
			return twice(c.Name)
		}
		seen[c.Name] = true
	}
	return nil
}

// openChannels notes since when the channels are told: not of what was before.
func (r *Runner) openChannels(ctx context.Context) error {
	for _, c := range r.alerting() {
		if err := r.openChannel(ctx, c); err != nil {
			return &ChannelError{c.Name, err}
		}
	}
	return nil
}

func (r *Runner) openChannel(ctx context.Context, c alert.Channel) error {
	_, err := r.pool.Exec(ctx, channelSQL, r.channelKey(c))
	return err
}

func (r *Runner) channelKey(c alert.Channel) string { return r.cfg.App + "/" + c.Name }

// queueAlerts queues the events that the channels are to be told of.
func (r *Runner) queueAlerts(ctx context.Context) error {
	var errs []error
	channels := r.alerting()
	if len(channels) == 0 {
		return nil
	}
	for _, c := range channels {
		_, err := r.pool.Exec(ctx, queueAlertsSQL, r.channelKey(c), c.Kinds(), r.cfg.App, c.Name, alertKind(r.cfg.App, c.Name))
		errs = append(errs, err)
	}
	_, err := r.pool.Exec(ctx, rescueAlertsSQL)
	return errors.Join(append(errs, err)...)
}

// addAlerts gives River the workers of the channels.
func (r *Runner) addAlerts(workers *river.Workers) {
	for _, c := range r.alerting() {
		now := func() (alert.Channel, bool) { return r.channel(c.Name) }
		w := &alertWorker{channel: now, pool: r.pool, log: r.log.With("channel", c.Name), dead: alertDead}
		river.AddWorkerArgs(workers, alertArgs{kind: alertKind(r.cfg.App, c.Name)}, w)
	}
}

// alertWorker delivers alerts to one channel, at least once each.
type alertWorker struct {
	river.WorkerDefaults[alertArgs]
	channel func() (alert.Channel, bool) // as it is now; false: it isn't one any more
	sender  alert.Sender
	pool    *pgxpool.Pool
	log     *slog.Logger
	dead    time.Duration
}

// Timeout bounds one delivery.
func (w *alertWorker) Timeout(*river.Job[alertArgs]) time.Duration { return alertTimeout }

// NextRetry is exponential, half of it jitter.
func (w *alertWorker) NextRetry(job *river.Job[alertArgs]) time.Time {
	d := alertFirst << min(max(job.Attempt-1, 0), 12)
	d = min(d, alertMost)
	return time.Now().Add(d/2 + rand.N(d/2))
}

// Work delivers, and gives up when the alert is old.
func (w *alertWorker) Work(ctx context.Context, job *river.Job[alertArgs]) error {
	channel, there := w.channel()
	if !there {
		return river.JobSnooze(alertFirst) // to another replica, which has it still
	}
	e, err := readEvent(ctx, w.pool, job.Args.Event)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil // pruned
	}
	if err == nil {
		err = w.sender.Send(ctx, channel, e)
	}
	switch {
	case err == nil:
		w.log.InfoContext(ctx, "alert delivered", "event", e.Kind, "id", e.ID, "job", e.Job, "period", e.Period)
		return nil
	case time.Since(job.CreatedAt) > w.dead:
		w.log.ErrorContext(ctx, "alert is dead: the channel hasn't taken it for a day", "id", job.Args.Event, "event", e.Kind,
			"job", e.Job, "period", e.Period, "attempts", job.Attempt, "error", err)
		return river.JobCancel(err)
	}
	w.log.WarnContext(ctx, "alert not delivered; it is sent again", "id", job.Args.Event, "event", e.Kind, "attempt", job.Attempt, "error", err)
	var status *alert.StatusError
	if errors.As(err, &status) && status.RetryAfter > 0 {
		return river.JobSnooze(status.RetryAfter)
	}
	return err
}

func readEvent(ctx context.Context, pool *pgxpool.Pool, id string) (alert.Event, error) {
	rows, err := pool.Query(ctx, eventOfSQL, id)
	if err != nil {
		return alert.Event{}, err
	}
	return pgx.CollectExactlyOneRow(rows, scanEvent)
}

-- What people are told of: each event once. What changes a row is noted in the transaction that changes it; what passes
-- with the time, or under locks, is noted by whichever replica looks first.

-- +goose Up

create table pawl.events (
    id       uuid primary key default gen_random_uuid(),   -- what a receiver tells repetitions by
    kind     text collate "C" not null,                     -- dead, missed, late, overdue, at_risk, stale_claim, refusal, stuck, uncertain, unmatched, timeout, unclaimed
    subject  text collate "C" not null,             -- of what: with the kind, what there is one event of
    at       timestamptz not null default clock_timestamp(),
    app      text,
    job      text collate "C",
    period   text collate "C",
    revision int,
    run      uuid,
    lock     text collate "C",
    token    bigint,
    detail   jsonb not null default '{}'
);
create unique index events_once on pawl.events (subject, kind);   -- in this order no list of kinds goes by it
create index events_at on pawl.events (at);

-- Which event was queued for which channel, so that two replicas queue it once; and since when there is a channel: it
-- isn't told of what was before it.
create table pawl.channels (
    name  text collate "C" primary key,             -- app/channel
    since timestamptz not null default clock_timestamp()
);
create table pawl.alerts (
    event   uuid not null,
    channel text collate "C" not null,
    at      timestamptz not null default clock_timestamp(),
    primary key (event, channel)
);
create index alerts_at on pawl.alerts using brin (at);

-- Which replicas live, and what they have functions for.
create table pawl.replicas (
    holder  text collate "C" primary key,
    app     text not null,
    jobs    text[] not null,
    seen_at timestamptz not null default clock_timestamp()
) with (fillfactor = 50);

create index periods_late on pawl.periods (late_at) where late_at is not null and ended_at is null;
create index periods_due on pawl.periods (due_at) where due_at is not null;

-- A period that dies twice, since somebody has retried it, is two events: attempts has grown.
-- +goose StatementBegin
create function pawl.period_event() returns trigger language plpgsql as $$
begin
  insert into pawl.events (kind, subject, app, job, period, revision, run, lock, token, detail)
  values (case when new.state = 'dead' and new.reason = 'uncertain' then 'uncertain' else new.state end,
          concat_ws('/', new.job, new.key, new.revision, case when new.state = 'dead' then new.attempts end),
          (select s.app from pawl.schedules s where s.job = new.job), new.job, new.key, new.revision, new.run, new.lock, new.token,
          jsonb_strip_nulls(jsonb_build_object('reason', new.reason, 'attempts', nullif(new.attempts, 0), 'scheduled_at', new.scheduled_at,
            'last_at', new.last_at, 'ticks', nullif(new.ticks, 1), 'blocked_by', new.blocked_by)))
  on conflict (subject, kind) do nothing;
  return null;
end $$;
-- +goose StatementEnd
create trigger noted after insert or update of state on pawl.periods
  for each row when (new.state in ('dead', 'missed')) execute function pawl.period_event();

-- +goose StatementBegin
create function pawl.run_event() returns trigger language plpgsql as $$
begin
  insert into pawl.events (kind, subject, app, job, period, revision, run, lock, token, detail)
  values ('timeout', new.id || '/over', (select s.app from pawl.schedules s where s.job = new.job), new.job, new.key, new.revision, new.id,
          new.lock, new.token, jsonb_strip_nulls(jsonb_build_object('attempt', new.attempt, 'started_at', new.started_at, 'ended_at', new.ended_at)))
  on conflict (subject, kind) do nothing;
  return null;
end $$;
-- +goose StatementEnd
create trigger noted after update of state on pawl.runs
  for each row when (new.state = 'timed_out') execute function pawl.run_event();

-- +goose Down
drop trigger noted on pawl.runs;
drop trigger noted on pawl.periods;
drop function pawl.run_event(), pawl.period_event();
drop index pawl.periods_due, pawl.periods_late;
drop table pawl.replicas, pawl.alerts, pawl.channels, pawl.events;

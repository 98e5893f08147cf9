-- What schedules need beyond ticks: pauses, what a period waits for, how it came to be owed, and by when it starts, is late
-- and is due.

-- +goose Up

alter table pawl.schedules
    add column generation   bigint not null default 0,   -- of the file or binary that stored the definition: a lower one doesn't replace it
    add column paused_at    timestamptz,                 -- ticks after it are held
    add column paused_by    text,
    add column pause_note   text,
    add column paused_until timestamptz,                 -- null: until somebody resumes it
    add column resume       text not null default 'none',   -- what paused_until owes of the held ticks: none, latest, all
    add column renamed      boolean not null default false,   -- it had another name, of which it keeps the lock
    add column retired_by   text;                        -- 'absent': its file or binary doesn't have it any more; else who

alter table pawl.periods
    add column origin     text not null default 'schedule',   -- schedule, trigger, backfill, rerun, outbox
    add column priority   smallint not null default 0,   -- within its lock; backfill has 1: after what the schedule owes
    add column waits      text,                          -- an open or held one: paused, dead, needs; a dead one: decision, pause
    add column blocked_by text,                          -- skipped (overlap), or waits: which period
    add column params     jsonb,                         -- what was given to it; the job's definition has the defaults
    add column repeat_effects boolean not null default false,   -- a rerun that sends again what was sent
    add column sends_as text collate "C",                -- the job's name when it was first owed, if that has changed: it stays in the keys of what is sent
    add column key_revision int not null default 1,      -- the last such revision: its number is in the key of what is sent
    add column refused    int not null default 0,        -- how often a receiver has definitely refused that key
    add column start_by   timestamptz,                   -- a first run after it is too late
    add column late_at    timestamptz,                   -- not started by then: late
    add column due_at     timestamptz;                   -- not complete by then: overdue

-- Jobs that have another name by now. As long as it isn't done, a part of their history has the former name: whoever asks for
-- a period by its key brings it along first.
create table pawl.renames (
    former     text collate "C" primary key,
    job        text collate "C" not null,
    generation bigint not null,                     -- of who has renamed it: a lower one doesn't bring the former back
    at         timestamptz not null default clock_timestamp(),
    done_at    timestamptz
);
create index renames_job on pawl.renames (job);

-- Gives periods of a renamed job its new name, with all that goes by it: those of some keys, waiting for who has locked one,
-- or else the latest that nobody has. Returns how many.
-- +goose StatementBegin
create function pawl.bring(p_former text, p_job text, p_keys text[], p_most int) returns int language plpgsql volatile as $$
declare n int; keys text[]; revisions int[]; late text[]; late_revisions int[]; k record; base bigint; last timestamptz;
begin
  if p_keys is null then
    select array_agg(o.key), array_agg(o.revision) into keys, revisions
      from (select p.key, p.revision from pawl.periods p where p.job = p_former order by p.scheduled_at desc limit p_most for update skip locked) o;
  else
    select array_agg(o.key), array_agg(o.revision) into keys, revisions
      from (select p.key, p.revision from pawl.periods p where p.job = p_former and (p.key = any (p_keys) or p.parent = any (p_keys))   -- with its shards
             order by p.key, p.revision for update) o;
  end if;
  -- The keys of an outbox came along when it was renamed. One that was new then, in a transaction that was still open, comes
  -- with all its messages: behind what has been enqueued under it since.
  select keys || array_agg(o.key), revisions || array_agg(o.revision) into late, late_revisions
    from (select p.key, p.revision from pawl.outbox_keys o join pawl.outbox m on m.job = o.job and m.key = o.key join pawl.periods p on p.job = m.job and p.key = m.period
           where o.job = p_former order by p.key, p.revision for update of p) o;
  if late is not null then
    keys := late; revisions := late_revisions;
  end if;
  for k in delete from pawl.outbox_keys o where o.job = p_former returning o.key, o.seq, o.at loop
    insert into pawl.outbox_keys as o (job, key, seq, at) values (p_job, k.key, k.seq, k.at)
    on conflict (job, key) do update set seq = o.seq + k.seq, at = greatest(k.at, o.at + k.seq * interval '1 us')
    returning o.seq - k.seq, o.at into base, last;
    update pawl.periods p set scheduled_at = last - (k.seq - m.seq) * interval '1 us'
      from pawl.outbox m where base > 0 and m.job = p_former and m.key = k.key and p.job = p_former and p.key = m.period;
    update pawl.outbox m set job = p_job, seq = m.seq + base where m.job = p_former and m.key = k.key;
  end loop;
  with moved as (
    update pawl.periods p set job = p_job, sends_as = coalesce(p.sends_as, p_former) from unnest(keys, revisions) o (key, revision)
     where p.job = p_former and p.key = o.key and p.revision = o.revision returning p.key, p.revision
  ), ran as (
    update pawl.runs r set job = p_job from unnest(keys, revisions) o (key, revision)
     where r.job = p_former and r.key = o.key and r.revision = o.revision returning r.id
  ), said as (
    update pawl.outputs x set job = p_job from ran where x.run = ran.id
  ), saved as (
    update pawl.checkpoints c set job = p_job from unnest(keys, revisions) o (key, revision)
     where c.job = p_former and c.key = o.key and c.revision = o.revision
  ), done as (
    update pawl.effects e set job = p_job from unnest(keys) o (key) where e.job = p_former and e.key = o.key
  ), posted as (
    update pawl.outbox m set job = p_job from unnest(keys) o (key) where m.job = p_former and m.period = o.key
  ), published as (
    update pawl.artifact_versions v set job = p_job from unnest(keys, revisions) o (key, revision)
     where v.job = p_former and v.key = o.key and v.revision = o.revision
  )
  select count(*) into n from moved;
  return n;
end $$;
-- +goose StatementEnd

-- ended_at, not state: with state in the predicate no start could be HOT. What waits is no head, and holds no line.
create index periods_unfinished on pawl.periods (lock, priority, scheduled_at, job, key, revision) where ended_at is null and waits is null;
create index periods_waiting on pawl.periods (job, scheduled_at) where waits is not null;
create index periods_start_by on pawl.periods (start_by) where start_by is not null and ended_at is null;

-- What people look for in a long history: what didn't end well, of little; what was skipped, of perhaps much; a job's and a
-- holder's runs, by how they ended, and those of all jobs that didn't end well. By the reason, since a start changes the
-- state, and none of the columns of these.
create index periods_bad on pawl.periods (job, scheduled_at) where ended_at is not null and reason not in ('overlap', 'exit_code');
create index periods_skipped on pawl.periods (job, scheduled_at) where ended_at is not null and reason in ('overlap', 'exit_code');
create index runs_ended on pawl.runs (job, state, started_at) where state <> 'running';
create index runs_holder on pawl.runs (holder, state, started_at) where state <> 'running';
create index runs_badly on pawl.runs (state, started_at) where state not in ('running', 'complete');

-- Why a period may not run yet, whatever its lock's line says: its job is paused (what a person asks for runs all the same);
-- one before it is dead and the job holds the next (a dead period that waits for a decision; of an outbox, in the line of its key); a job that it needs, by any name
-- that it had, hasn't completed the same key. Null: it may.
-- +goose StatementBegin
create function pawl.waits_for(p_job text, p_key text, p_at timestamptz, p_origin text) returns text language sql stable as $$
  select case
      when p_origin in ('schedule', 'backfill', 'outbox')
       and (s.paused_at is not null or exists (select from pawl.periods d where d.job = p_job and d.waits = 'pause')) then 'paused'
      when exists (select from pawl.periods d where d.job = p_job and d.waits = 'decision' and d.scheduled_at < p_at
                      and (s.definition ->> 'overlap' is distinct from 'allow' or d.lock in (select o.lock from pawl.periods o where o.job = p_job and o.key = p_key))) then 'dead'
      when exists (select from jsonb_array_elements_text(s.definition -> 'needs') n (job)
                    where not exists (select from pawl.periods q where q.key = p_key and q.state = 'complete'
                                         and q.job = any (array(select n.job union all select f.former from pawl.renames f where f.job = n.job and f.done_at is null
                                                                   union all select f.job from pawl.renames f where f.former = n.job)))) then 'needs'
    end
    from pawl.schedules s where s.job = p_job
$$;
-- +goose StatementEnd

-- Some runs have made their periods dead: what the job says of that. The periods behind wait from here on; the schedule
-- itself is paused by a transaction of its own, which comes after this one (schedules are locked before lanes). Only for
-- lanes that the transaction has entered.
-- +goose StatementBegin
create function pawl.died(p_runs uuid[]) returns void language plpgsql volatile as $$
begin
  with d as (
    update pawl.periods p set waits = case s.definition ->> 'on_dead' when 'pause' then 'pause' else 'decision' end
      from pawl.runs r join pawl.schedules s on s.job = r.job
     where r.id = any (p_runs) and p.job = r.job and p.key = r.key and p.revision = r.revision and p.run = r.id and p.state = 'dead'
       and p.parent is null      -- a shard's period dies when its other shards have ended
       and s.definition ->> 'on_dead' in ('pause', 'hold_next')
    returning p.job, p.key, p.lock, p.scheduled_at, p.waits
  )
  update pawl.periods o set waits = case d.waits when 'pause' then 'paused' else 'dead' end, blocked_by = d.job || ' ' || d.key
    from d where o.job = d.job and o.lock = d.lock and o.state = 'open' and o.ended_at is null and o.waits is null
             and (d.waits = 'pause' or o.scheduled_at > d.scheduled_at);
end $$;
-- +goose StatementEnd

-- +goose Down
drop function pawl.bring(text, text, text[], int), pawl.died(uuid[]), pawl.waits_for(text, text, timestamptz, text);
drop index pawl.runs_badly, pawl.runs_holder, pawl.runs_ended, pawl.periods_skipped, pawl.periods_bad, pawl.periods_start_by, pawl.periods_waiting, pawl.periods_unfinished;
drop table pawl.renames;
alter table pawl.periods drop column due_at, drop column late_at, drop column start_by, drop column refused, drop column key_revision, drop column sends_as, drop column repeat_effects, drop column params, drop column blocked_by, drop column waits,
                         drop column priority, drop column origin;
alter table pawl.schedules drop column retired_by, drop column renamed, drop column resume, drop column paused_until, drop column pause_note, drop column paused_by,
                           drop column paused_at, drop column generation;

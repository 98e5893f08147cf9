-- Shards: a period that is fanned out is a row whose shards are rows of their own, each with a lock, a lane, runs, retries and a
-- checkpoint as any period has. A shard's key is the period's, # and its own; its lock is the period's lock, # and the same.
-- Shards are open or run only while their period is running without a run of its own, and no lock has two such periods, nor one
-- beside a run: so that work which was cut in another way never overlaps.

-- +goose Up

alter table pawl.periods
    add column shards   int,                        -- of a period that was fanned out: how many; it stays
    add column parent   text collate "C",           -- of a shard: the key of its period
    add column shard    text collate "C",           -- and its own
    add column shard_no int;                        -- and its place, from 0

create index periods_fanned on pawl.periods (lock) where shards is not null and ended_at is null;
create index periods_shards on pawl.periods (job, parent, revision, shard_no) where parent is not null;

-- Ends a run of a period with the period's shards open: all of them the first time; those that are neither complete nor skipped
-- when somebody retries it, with all their runs again. It costs no attempt, releases the lease, and the period holds its lock's
-- line from here on. p_shards: the keys, of a period that was fanned out before the stored ones. It returns how many it has
-- opened, or null where the lease isn't live any more. Order of locks as in pawl.finish.
-- +goose StatementBegin
create function pawl.fan_out(p_run uuid, p_lock text, p_token bigint, p_shards text[], p_most int, p_wait_ms int) returns int
language plpgsql volatile as $$
declare at timestamptz; l pawl.locks; p pawl.periods; names text[]; n int;
begin
  perform pawl.patient(p_wait_ms);
  select * into l from pawl.locks o where o.name = p_lock and o.token = p_token and o.grant_id = p_run for no key update;
  names := array(select p_lock || '#' || s from unnest(p_shards) s) || p_lock;
  perform pawl.lane(names);
  at := clock_timestamp();                          -- the lock row is ours
  if l.name is null or l.expires_at <= at then return null; end if;
  select x.* into p from pawl.runs r join pawl.periods x on x.job = r.job and x.key = r.key and x.revision = r.revision and x.run = r.id
   where r.id = p_run and r.state = 'running' and x.state = 'running';
  if not found then return null; end if;
  if p.shards is null then
    insert into pawl.periods (job, key, revision, lock, origin, priority, start_at, end_at, scheduled_at, max_attempts, key_revision, sends_as, refused, repeat_effects, params,
           parent, shard, shard_no)
    select p.job, p.key || '#' || s.shard, p.revision, p_lock || '#' || s.shard, 'shard', p.priority, p.start_at, p.end_at, p.scheduled_at, p_most, p.key_revision, p.sends_as,
           coalesce((select o.refused from pawl.periods o where o.job = p.job and o.key = p.key || '#' || s.shard and o.revision < p.revision and o.key_revision = p.key_revision order by o.revision desc limit 1), p.refused), p.repeat_effects, p.params, p.key, s.shard, s.nth - 1
      from unnest(p_shards) with ordinality s (shard, nth);
  else
    update pawl.periods s set state = 'open', reason = 'operator', ended_at = null, not_before = null, max_attempts = s.attempts + p_most
     where s.job = p.job and s.parent = p.key and s.revision = p.revision and s.state not in ('open', 'running', 'complete', 'skipped');
  end if;
  get diagnostics n = row_count;
  update pawl.periods x set shards = cardinality(p_shards), attempts = x.attempts - 1, start_by = null, late_at = null, reason = null
   where x.job = p.job and x.key = p.key and x.revision = p.revision;
  update pawl.runs r set state = 'complete', ended_at = at where r.id = p_run;
  insert into pawl.tenures (lock, token, grant_id, holder, key, request_id, acquired_at, expires_at, ended_at, how, beats, longest_gap)
  values (l.name, l.token, l.grant_id, l.holder, l.key, l.request_id, l.acquired_at, l.expires_at, at, 'released', l.beats, l.longest_gap);
  update pawl.locks o set grant_id = null, holder = null, key = null, expires_at = null, renewed_at = at where o.name = p_lock;
  perform pg_notify('pawl_released', w.lock) from pawl.waiters w where w.lock = p_lock and w.until > at group by w.lock;
  perform pawl.leave(names);
  return n;
end $$;
-- +goose StatementEnd

-- What has become of a period whose shards have all ended: with one dead it is dead, and says which; else it is open again, for
-- its last run, which reduces, or, if some were cancelled since the job was retired for a while, opens those. Null: it isn't
-- so far, or somebody else has done it. A transaction of its own, after that in which the last shard has ended: a shard that
-- ends holds its own lane alone. Nobody is missed: who ends last sees all others ended.
-- +goose StatementBegin
create function pawl.settle_shards(p_job text, p_key text, p_revision int, p_wait_ms int) returns text language plpgsql volatile as $$
declare f record; c record; became text;
begin
  perform pawl.patient(p_wait_ms);
  select x.lock, x.run into f from pawl.periods x
   where x.job = p_job and x.key = p_key and x.revision = p_revision and x.state = 'running' and x.shards is not null
     and not exists (select from pawl.periods s where s.job = p_job and s.parent = p_key and s.revision = p_revision and s.state in ('open', 'running'));
  if not found then return null; end if;
  perform pawl.lane(array[f.lock]);
  select x.lock, x.run, x.shards into f from pawl.periods x
   where x.job = p_job and x.key = p_key and x.revision = p_revision and x.state = 'running' and x.shards is not null
     and not exists (select from pawl.runs r where r.lock = x.lock and r.ended_at is null);
  if not found then return null; end if;
  select count(*) as n, count(*) filter (where s.state in ('open', 'running')) as unfinished, count(*) filter (where s.state = 'cancelled') as cancelled,
         count(*) filter (where s.state = 'dead') as dead,
         (array_agg(s.job || ' ' || s.key order by s.shard_no) filter (where s.state = 'dead')) as which into c
    from pawl.periods s where s.job = p_job and s.parent = p_key and s.revision = p_revision;
  if c.unfinished > 0 or c.n < f.shards then return null; end if;
  became := case when c.dead > 0 then 'dead'
                 when c.cancelled > 0 and exists (select from pawl.schedules s where s.job = p_job and s.retired_at is not null) then 'cancelled' else 'open' end;
  update pawl.periods x
     set state = became, not_before = null,
         reason = case became when 'dead' then 'shard' when 'cancelled' then 'retired' end,
         blocked_by = case became when 'dead' then array_to_string(c.which[1:3], ', ') || case when c.dead > 3 then format(' and %s more', c.dead - 3) else '' end end,
         ended_at = case when became <> 'open' then clock_timestamp() end
   where x.job = p_job and x.key = p_key and x.revision = p_revision;
  if became = 'dead' then perform pawl.died(array[f.run]); end if;
  perform pawl.leave(array[f.lock]);
  return became;
end $$;
-- +goose StatementEnd

-- +goose Down
drop function pawl.settle_shards(text, text, int, int), pawl.fan_out(uuid, text, bigint, text[], int, int);
drop index pawl.periods_shards, pawl.periods_fanned;
alter table pawl.periods drop column shard_no, drop column shard, drop column parent, drop column shards;

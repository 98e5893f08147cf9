-- What a run's start, end and hand-over write. Functions of few statements with kept plans: one call, in one transaction,
-- does the work of many requests, each of its statements that of all of them. Every statement has a snapshot of its own.
-- Order of locks: docs/protocol.md.

-- +goose Up

-- At most so long does a transaction wait for one row, and it must be READ COMMITTED: one snapshot would judge by what was.
-- In a transaction of the user's, whose end is its last statement, the plans are chosen as on connections of ours: once,
-- by key, not anew at each call.
-- +goose StatementBegin
create function pawl.patient(p_wait_ms int) returns boolean language plpgsql volatile as $$
declare done text;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'pawl: runs are started and ended at READ COMMITTED, this transaction is % [PW006]', current_setting('transaction_isolation')
      using errcode = 'PW006';
  end if;
  if current_setting('synchronous_commit') = 'off' then perform pawl.flushed(); end if;
  done := set_config('lock_timeout', p_wait_ms || 'ms', true);
  if current_setting('plan_cache_mode') <> 'force_generic_plan' then
    done := set_config('plan_cache_mode', 'force_generic_plan', true);
    done := set_config('enable_seqscan', 'off', true);
    done := set_config('jit', 'off', true);
  end if;
  return true;
end $$;
-- +goose StatementEnd

-- A run, as start and hand-over answer it. delivery and ttl are for begin_runs alone.
create type pawl.started as (
    lock         text,
    outcome      text,                              -- started, busy (somebody outside has the lock), nothing, late, adopt
    run          uuid,
    token        bigint,
    job          text,
    key          text,
    revision     int,
    attempt      int,
    max_attempts int,
    scheduled_at timestamptz,
    start_at     timestamptz,
    end_at       timestamptz,
    acquired_at  timestamptz,
    expires_at   timestamptz,
    checkpoint   jsonb,
    more         boolean,                           -- another period of the lock was open
    delivery     bigint,
    ttl          interval,
    fanned       boolean                            -- the period's shards have run: what is left is its reduction
);

-- Makes periods run under the locks that have just been granted for them.
-- +goose StatementBegin
create function pawl.begin_runs(p_runs pawl.started[], p_holder text) returns setof pawl.started language plpgsql volatile as $$
begin
  update pawl.periods x set state = 'running', run = s.run, token = s.token, attempts = s.attempt, not_before = null, reason = null,
         started_at = case when x.shards is null then s.acquired_at else x.started_at end   -- with its shards
    from unnest(p_runs) s where x.job = s.job and x.key = s.key and x.revision = s.revision;
  insert into pawl.runs (id, job, key, revision, attempt, lock, token, holder, delivery, started_at, resumed)
  select s.run, s.job, s.key, s.revision, s.attempt, s.lock, s.token, p_holder, s.delivery, s.acquired_at,
         exists (select from pawl.checkpoints c where c.job = s.job and c.key = s.key and c.revision = s.revision)
    from unnest(p_runs) s;
  return query
  select s.lock, 'started'::text, s.run, s.token, s.job, s.key, s.revision, s.attempt, s.max_attempts, s.scheduled_at, s.start_at, s.end_at,
         s.acquired_at, s.expires_at, (select c.value from pawl.checkpoints c where c.job = s.job and c.key = s.key and c.revision = s.revision),
         exists (select from pawl.periods x where x.lock = s.lock and x.ended_at is null and x.waits is null and x.state = 'open'), s.delivery, s.ttl, s.fanned
    from unnest(p_runs) s;
end $$;
-- +goose StatementEnd

-- The first lease of locks that have no row yet. It waits for nobody's birth, or it would grant to a caller that has gone.
-- +goose StatementBegin
create function pawl.births(p_ready pawl.started[], p_holder text) returns pawl.started[] language plpgsql volatile as $$
declare s pawl.started; born pawl.started[] := '{}';
begin
  foreach s in array p_ready loop
    continue when exists (select from pawl.locks o where o.name = s.lock)
               or not pg_try_advisory_xact_lock(hashtext('pawl.locks'), hashtext(s.lock));
    s.acquired_at := clock_timestamp();
    s.expires_at := s.acquired_at + s.ttl;
    insert into pawl.locks as o (name, token, incarnation, grant_id, holder, ttl, acquired_at, renewed_at, expires_at)
    select s.lock, pawl.next_token(null, true, c.floor), c.incarnation, s.run, p_holder, s.ttl, s.acquired_at, s.acquired_at, s.expires_at
      from pawl.clock c where c.incarnation = pawl.incarnation() and not exists (select from pawl.locks x where x.name = s.lock)
    on conflict (name) do nothing returning o.token into s.token;
    if found then born := born || s; end if;
  end loop;
  return born;
end $$;
-- +goose StatementEnd

-- p_locks, p_grants (the new runs' ids) and p_deliveries: one request for each lock. p_jobs and p_ttls (ms): the jobs whose
-- function the caller has. p_busy (ms): how long a lock that is held is left alone. p_arrived: all deliveries that have
-- arrived, whatever they find. Lock rows are taken after the lanes, allowed because SKIP LOCKED never waits.
-- +goose StatementBegin
create function pawl.start(p_locks text[], p_grants uuid[], p_deliveries bigint[], p_holder text, p_jobs text[], p_ttls bigint[],
                           p_busy bigint, p_arrived bigint[], p_wait_ms int) returns setof pawl.started
language plpgsql volatile as $$
declare
  k pawl.clock; ready pawl.started[]; granted pawl.started[] := '{}'; busy text[] := '{}'; patient boolean;
begin
  patient := pawl.patient(p_wait_ms);
  insert into pawl.lanes as n (lock) select distinct unnest(p_locks) collate "C" order by 1
  on conflict (lock) do update set seq = n.seq + 1, delivery = case when n.delivery = any (p_arrived) then null else n.delivery end, not_before = null;
  select * into k from pawl.clock c where c.incarnation = pawl.incarnation();
  -- Each lock's oldest open period: one that waits for its retry, or for another replica's job, holds the line.
  select coalesce(array_agg((q.lock, case when k.one then 'busy' else 'adopt' end, q.run, null, h.job, h.key, h.revision, h.attempts + 1, h.max_attempts,
                   h.scheduled_at, h.start_at, h.end_at, null, null, null, null, q.delivery,
                   p_ttls[array_position(p_jobs, h.job)] * interval '1 ms', h.shards is not null)::pawl.started), '{}') into ready
    from unnest(p_locks, p_grants, p_deliveries) q (lock, run, delivery) cross join lateral (
      select x.* from pawl.periods x where x.lock = q.lock and x.ended_at is null and x.waits is null and x.state = 'open'
       order by x.priority, x.scheduled_at, x.job, x.key, x.revision limit 1) h
   where h.job = any (p_jobs) and (h.not_before is null or h.not_before <= clock_timestamp())
     and (h.start_by is null or h.attempts > 0 or h.start_by > clock_timestamp())
     and not exists (select from pawl.runs r where r.lock = q.lock and r.ended_at is null)
     and not exists (select from pawl.periods f where f.lock = q.lock and f.shards is not null and f.ended_at is null and f.state = 'running');
  if k.one then
    with free as materialized (                                                             -- peek, lock
      select s.*, o.token as last, o.incarnation, o.grant_id, o.holder, o.key as owner, o.request_id, o.acquired_at as since, o.expires_at as until, o.beats, o.longest_gap
        from unnest(ready) s join pawl.locks o on o.name = s.lock
       where o.grant_id is null or o.expires_at <= clock_timestamp() for update of o skip locked
    ), judged as materialized (
      select f.*, clock_timestamp() as at from free f
    ), got as (
      update pawl.locks o
         set token = pawl.next_token(j.last, j.incarnation = k.incarnation, k.floor), incarnation = k.incarnation, grant_id = j.run, holder = p_holder,
             key = null, request_id = null, ttl = j.ttl, beats = 0, longest_gap = '0', acquired_at = j.at, renewed_at = j.at, expires_at = j.at + j.ttl
        from judged j where o.name = j.lock and (j.grant_id is null or j.until <= j.at)      -- judge
      returning j.*, o.token as fresh
    ), past as (
      insert into pawl.tenures (lock, token, grant_id, holder, key, request_id, acquired_at, expires_at, ended_at, how, successor, beats, longest_gap)
      select g.lock, g.last, g.grant_id, g.holder, g.owner, g.request_id, g.since, g.until, g.until, 'taken_over', g.fresh, g.beats, g.longest_gap from got g where g.grant_id is not null
    ), heirs as (
      update pawl.tenures e set how = case e.how when 'expired' then 'taken_over' else e.how end, successor = g.fresh
        from got g where e.lock = g.lock and e.token = g.last and e.how in ('expired', 'forced') and g.grant_id is null
    )
    select coalesce(array_agg((g.lock, 'started', g.run, g.fresh, g.job, g.key, g.revision, g.attempt, g.max_attempts, g.scheduled_at, g.start_at, g.end_at,
                               g.at, g.at + g.ttl, null, null, g.delivery, g.ttl, g.fanned)::pawl.started), '{}') into granted from got g;
    if cardinality(granted) < cardinality(ready) then granted := granted || pawl.births(ready, p_holder); end if;
  end if;
  if granted <> '{}' then return query select * from pawl.begin_runs(granted, p_holder); end if;
  if cardinality(granted) = cardinality(p_locks) then return; end if;
  select coalesce(array_agg(s.lock), '{}') into busy from unnest(ready) s where s.lock not in (select g.lock from unnest(granted) g);
  update pawl.lanes n set not_before = clock_timestamp() + p_busy * interval '1 ms' where n.lock = any (busy);
  return query
  select q.lock, case when q.lock = any (busy) and k.one then 'busy' when q.lock = any (busy) then 'adopt'
                      when exists (select from pawl.periods x where x.lock = q.lock and x.ended_at is null and x.waits is null and x.state = 'open'
                                      and x.start_by <= clock_timestamp() and x.attempts = 0) then 'late' else 'nothing' end, null::uuid, null::bigint, null::text, null::text, null::int,
         null::int, null::int, null::timestamptz, null::timestamptz, null::timestamptz, null::timestamptz, null::timestamptz, null::jsonb, false, null::bigint, null::interval, false
    from unnest(p_locks) q (lock) where q.lock not in (select g.lock from unnest(granted) g);
  perform pawl.leave(p_locks);
end $$;
-- +goose StatementEnd

-- Ends runs, and releases their leases. ended is false where the lease isn't live any more; with p_strict that is PW002.
-- FOR NO KEY UPDATE waits for a beat and passes guards. The lanes are those of all requests, refused ones too: leave may
-- not name a lane that the transaction doesn't hold.
-- +goose StatementBegin
create function pawl.finish(p_runs uuid[], p_locks text[], p_tokens bigint[], p_outcomes text[], p_retries bigint[], p_errors text[],
                            p_done bigint[], p_total bigint[], p_strict boolean, p_wait_ms int) returns table (run uuid, ended boolean)
language plpgsql volatile as $$
declare
  at timestamptz; patient boolean; fine uuid[]; freed text[]; waiting text[]; dead uuid[];
begin
  patient := pawl.patient(p_wait_ms);
  perform from pawl.locks o where o.name = any (p_locks) and o.grant_id = any (p_runs) order by o.name for no key update;
  insert into pawl.lanes as n (lock) select distinct unnest(p_locks) collate "C" order by 1 on conflict (lock) do update set seq = n.seq + 1;
  at := clock_timestamp();                          -- the lock rows are ours
  with ends as (
    update pawl.periods p
       set state = pawl.after(q.outcome, p.attempts, p.max_attempts),
           reason = case q.outcome when 'complete' then null when 'skipped' then 'exit_code' when 'final' then 'failed' else q.outcome end,
           ended_at = case when pawl.after(q.outcome, p.attempts, p.max_attempts) <> 'open' then coalesce(p.ended_at, at) end,
           attempts = p.attempts - (q.outcome = 'drained')::int,
           not_before = case when q.retry > 0 then at + q.retry * interval '1 ms' end
      from unnest(p_runs, p_locks, p_tokens, p_outcomes, p_retries) q (run, lock, token, outcome, retry)
      join pawl.locks o on o.name = q.lock and o.token = q.token and o.grant_id = q.run
      join pawl.runs r on r.id = q.run
     where o.expires_at > at
       and r.state = 'running' and p.job = r.job and p.key = r.key and p.revision = r.revision and p.run = q.run
       and (p.state = 'running' or p.state = 'complete' and q.outcome = 'complete')
    returning q.run, q.lock, p.state
  )
  select coalesce(array_agg(e.run), '{}'), coalesce(array_agg(e.lock), '{}'), array_agg(e.run) filter (where e.state = 'dead') into fine, freed, dead from ends e;
  if cardinality(fine) < cardinality(p_runs) and p_strict then perform pawl.must(false, 'PW002'); end if;
  update pawl.runs x set state = case when q.outcome in ('final', 'uncertain') then 'failed' else q.outcome end, error = nullif(q.error, ''), ended_at = at, done = coalesce(nullif(q.done, -1), x.done), total = coalesce(nullif(q.total, -1), x.total)
    from unnest(p_runs, p_outcomes, p_errors, p_done, p_total) q (run, outcome, error, done, total) where x.id = q.run and q.run = any (fine);
  insert into pawl.tenures (lock, token, grant_id, holder, key, request_id, acquired_at, expires_at, ended_at, how, beats, longest_gap)
  select l.name, l.token, l.grant_id, l.holder, l.key, l.request_id, l.acquired_at, l.expires_at, at, 'released', l.beats, l.longest_gap from pawl.locks l where l.name = any (freed);
  update pawl.locks o set grant_id = null, holder = null, key = null, expires_at = null, renewed_at = at where o.name = any (freed);
  perform pg_notify('pawl_released', w.lock) from pawl.waiters w where w.lock = any (freed) and w.until > at group by w.lock;
  if dead <> '{}' then perform pawl.died(dead); end if;
  select array_agg(distinct x.lock) into waiting from pawl.periods x where x.lock = any (p_locks) and x.ended_at is null and x.waits is null and x.state = 'open';
  if waiting <> '{}' then perform pawl.leave(waiting); end if;
  return query select q.run, q.run = any (fine) from unnest(p_runs) q (run);
end $$;
-- +goose StatementEnd

-- Completes runs and starts each lock's next period; the lock is never free between. A run that is missing from the answer
-- was left as it is (nothing due, row locked by a leaked guard or by our own beat, refused, not adopted): finish it.
-- FOR UPDATE, since the token changes: a leaked guarded transaction of the finished run must not commit under the next
-- token. SKIP LOCKED, so that nothing can hold it up.
-- +goose StatementBegin
create function pawl.handover(p_runs uuid[], p_locks text[], p_tokens bigint[], p_fresh uuid[], p_holder text, p_jobs text[], p_ttls bigint[],
                              p_done bigint[], p_total bigint[], p_wait_ms int) returns setof pawl.started
language plpgsql volatile as $$
declare
  k pawl.clock; granted pawl.started[]; patient boolean;
begin
  patient := pawl.patient(p_wait_ms);
  insert into pawl.lanes as n (lock) select distinct unnest(p_locks) collate "C" order by 1 on conflict (lock) do update set seq = n.seq + 1;
  select * into k from pawl.clock c where c.incarnation = pawl.incarnation();
  if not found then return; end if;
  with held as materialized (
    select q.*, h.*, o.incarnation, o.grant_id, o.holder, o.key as owner, o.request_id, o.acquired_at as since, o.expires_at as until, o.beats, o.longest_gap,
           p_ttls[array_position(p_jobs, h.job)] * interval '1 ms' as ttl
      from unnest(p_runs, p_locks, p_tokens, p_fresh, p_done, p_total) q (run, lock, token, fresh, done, total)
     cross join lateral (
        select x.job, x.key, x.revision, x.attempts, x.max_attempts, x.scheduled_at, x.start_at, x.end_at, x.not_before, x.start_by, x.shards is not null as fanned
          from pawl.periods x where x.lock = q.lock and x.ended_at is null and x.waits is null and x.state = 'open'
         order by x.priority, x.scheduled_at, x.job, x.key, x.revision limit 1) h                      -- one that waits for its retry holds the line
      join pawl.locks o on o.name = q.lock and o.token = q.token and o.grant_id = q.run
     where h.job = any (p_jobs) and (h.not_before is null or h.not_before <= clock_timestamp())
       and (h.start_by is null or h.attempts > 0 or h.start_by > clock_timestamp())
       for update of o skip locked
  ), judged as materialized (
    select h.*, clock_timestamp() as at from held h
  ), completed as (
    update pawl.periods x set state = 'complete', reason = null, ended_at = j.at
      from judged j join pawl.runs r on r.id = j.run
     where j.until > j.at and r.state = 'running' and x.job = r.job and x.key = r.key and x.revision = r.revision and x.run = j.run and x.state = 'running'
    returning j.*, r.delivery
  ), ended as (
    update pawl.runs x set state = 'complete', ended_at = c.at, done = coalesce(nullif(c.done, -1), x.done), total = coalesce(nullif(c.total, -1), x.total)
      from completed c where x.id = c.run
  ), moved as (
    update pawl.locks o
       set token = pawl.next_token(c.token, c.incarnation = k.incarnation, k.floor), incarnation = k.incarnation, grant_id = c.fresh,
           holder = p_holder, ttl = c.ttl, beats = 0, longest_gap = '0', acquired_at = c.at, renewed_at = c.at, expires_at = c.at + c.ttl
      from completed c where o.name = c.lock
    returning c.*, o.token as heir
  ), past as (
    insert into pawl.tenures (lock, token, grant_id, holder, key, request_id, acquired_at, expires_at, ended_at, how, successor, beats, longest_gap)
    select m.lock, m.token, m.grant_id, m.holder, m.owner, m.request_id, m.since, m.until, m.at, 'released', m.heir, m.beats, m.longest_gap from moved m
  )
  select array_agg((m.lock, 'started', m.fresh, m.heir, m.job, m.key, m.revision, m.attempts + 1, m.max_attempts, m.scheduled_at, m.start_at, m.end_at,
                    m.at, m.at + m.ttl, null, null, m.delivery, m.ttl, m.fanned)::pawl.started) into granted from moved m;
  if granted <> '{}' then return query select * from pawl.begin_runs(granted, p_holder); end if;
end $$;
-- +goose StatementEnd

-- +goose Down
drop function pawl.handover(uuid[], text[], bigint[], uuid[], text, text[], bigint[], bigint[], bigint[], int),
              pawl.finish(uuid[], text[], bigint[], text[], bigint[], text[], bigint[], bigint[], boolean, int),
              pawl.start(text[], uuid[], bigint[], text, text[], bigint[], bigint, bigint[], int),
              pawl.births(pawl.started[], text), pawl.begin_runs(pawl.started[], text), pawl.patient(int);
drop type pawl.started;

-- What a run's start, end and hand-over write. Functions of small statements with kept plans: one call does the work of
-- many requests, in one transaction, without a round trip between its steps; a single statement for all of it costs twice
-- as much to set up. Every statement in them has a snapshot of its own. Order of locks: docs/protocol.md.

-- +goose Up

-- At most so long does a transaction wait for one row, and it must be READ COMMITTED: one snapshot would judge by what was.
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
  return true;
end $$;
-- +goose StatementEnd

-- A run, as start and hand-over answer it.
create type pawl.started as (
    lock         text,
    outcome      text,                              -- started, busy (somebody outside has the lock), nothing, adopt
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
    more         boolean                            -- another period of the lock was open
);

-- Makes the period p run under a lock that has just been granted.
-- +goose StatementBegin
create function pawl.begin_run(p pawl.periods, p_run uuid, p_token bigint, p_holder text, p_delivery bigint, p_acquired timestamptz, p_ttl interval)
returns pawl.started language plpgsql volatile as $$
declare s pawl.started;
begin
  update pawl.periods x set state = 'running', run = p_run, token = p_token, attempts = x.attempts + 1, not_before = null, reason = null, started_at = p_acquired
   where x.job = p.job and x.key = p.key and x.revision = p.revision;
  select c.value into s.checkpoint from pawl.checkpoints c where c.job = p.job and c.key = p.key and c.revision = p.revision;
  insert into pawl.runs (id, job, key, revision, attempt, lock, token, holder, delivery, started_at, resumed)
  values (p_run, p.job, p.key, p.revision, p.attempts + 1, p.lock, p_token, p_holder, p_delivery, p_acquired, found);
  s.lock := p.lock; s.outcome := 'started'; s.run := p_run; s.token := p_token; s.job := p.job; s.key := p.key;
  s.revision := p.revision; s.attempt := p.attempts + 1; s.max_attempts := p.max_attempts; s.scheduled_at := p.scheduled_at;
  s.start_at := p.start_at; s.end_at := p.end_at; s.acquired_at := p_acquired; s.expires_at := p_acquired + p_ttl;
  s.more := exists (select from pawl.periods x where x.lock = p.lock and x.ended_at is null and x.state = 'open');
  return s;
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
  k pawl.clock; p pawl.periods; l pawl.locks; s pawl.started; lasts interval; tok bigint; at timestamptz; patient boolean; idle text[] := '{}';
begin
  patient := pawl.patient(p_wait_ms);
  insert into pawl.lanes as n (lock) select distinct unnest(p_locks) order by 1
  on conflict (lock) do update set seq = n.seq + 1, delivery = case when n.delivery = any (p_arrived) then null else n.delivery end, not_before = null;
  select * into k from pawl.clock c where c.incarnation = pawl.incarnation();
  for i in 1 .. cardinality(p_locks) loop
    s := null; s.lock := p_locks[i]; s.outcome := 'nothing'; tok := null;
    select * into p from pawl.periods x where x.lock = p_locks[i] and x.ended_at is null and x.state = 'open'
     order by x.scheduled_at, x.job, x.key, x.revision limit 1;        -- one that waits for its retry holds the line
    if p.job = any (p_jobs) and (p.not_before is null or p.not_before <= clock_timestamp())
       and not exists (select from pawl.runs r where r.lock = p_locks[i] and r.ended_at is null) then
      lasts := p_ttls[array_position(p_jobs, p.job)] * interval '1 ms';
      s.outcome := case when k.one then 'busy' else 'adopt' end;
      select * into l from pawl.locks o where o.name = p_locks[i];                          -- peek
      if not k.one is true then
        null;
      elsif l.name is null then
        if pg_try_advisory_xact_lock(hashtext('pawl.locks'), hashtext(p_locks[i])) then
          at := clock_timestamp();
          insert into pawl.locks as o (name, token, incarnation, grant_id, holder, ttl, acquired_at, renewed_at, expires_at)
          select p_locks[i], pawl.next_token(null, true, c.floor), c.incarnation, p_grants[i], p_holder, lasts, at, at, at + lasts
            from pawl.clock c where c.incarnation = k.incarnation and not exists (select from pawl.locks x where x.name = p_locks[i])
          on conflict (name) do nothing returning o.token into tok;
        end if;
      elsif l.grant_id is null or l.expires_at <= clock_timestamp() then
        select * into l from pawl.locks o where o.name = p_locks[i] for update skip locked;   -- lock
        at := clock_timestamp();
        if found and (l.grant_id is null or l.expires_at <= at) then                        -- judge
          update pawl.locks o
             set token = pawl.next_token(l.token, l.incarnation = k.incarnation, k.floor), incarnation = k.incarnation, grant_id = p_grants[i],
                 holder = p_holder, key = null, ttl = lasts, beats = 0, longest_gap = '0', acquired_at = at, renewed_at = at, expires_at = at + lasts
           where o.name = p_locks[i] returning o.token into tok;
          if l.grant_id is not null then
            insert into pawl.tenures (lock, token, grant_id, holder, key, acquired_at, ended_at, how, successor, beats, longest_gap)
            values (l.name, l.token, l.grant_id, l.holder, l.key, l.acquired_at, l.expires_at, 'taken_over', tok, l.beats, l.longest_gap);
          else
            update pawl.tenures e set how = case e.how when 'expired' then 'taken_over' else e.how end, successor = tok
             where e.lock = l.name and e.token = l.token and e.how in ('expired', 'forced');
          end if;
        end if;
      end if;
    end if;
    if tok is not null then
      s := pawl.begin_run(p, p_grants[i], tok, p_holder, p_deliveries[i], at, lasts);
    else
      idle := idle || p_locks[i];
      if s.outcome <> 'nothing' then
        update pawl.lanes n set not_before = clock_timestamp() + p_busy * interval '1 ms' where n.lock = p_locks[i];
      end if;
    end if;
    return next s;
  end loop;
  if idle <> '{}' then perform pawl.leave(idle); end if;   -- the others have a running run: nothing to deliver
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
  l pawl.locks; at timestamptz; patient boolean; waiting text[] := '{}';
begin
  patient := pawl.patient(p_wait_ms);
  perform from pawl.locks o where o.name = any (p_locks) and o.grant_id = any (p_runs) order by o.name for no key update;
  insert into pawl.lanes as n (lock) select distinct unnest(p_locks) order by 1 on conflict (lock) do update set seq = n.seq + 1;
  for i in 1 .. cardinality(p_runs) loop
    run := p_runs[i]; ended := false; at := clock_timestamp();
    select * into l from pawl.locks o where o.name = p_locks[i] and o.token = p_tokens[i] and o.grant_id = p_runs[i];
    if l.expires_at > at then
      update pawl.periods p
         set state = pawl.after(p_outcomes[i], p.attempts, p.max_attempts),
             reason = case when p_outcomes[i] <> 'complete' then p_outcomes[i] end,
             ended_at = case when pawl.after(p_outcomes[i], p.attempts, p.max_attempts) <> 'open' then coalesce(p.ended_at, at) end,
             attempts = p.attempts - (p_outcomes[i] = 'drained')::int,
             not_before = case when p_retries[i] > 0 then at + p_retries[i] * interval '1 ms' end
        from pawl.runs r
       where r.id = p_runs[i] and r.ended_at is null and p.job = r.job and p.key = r.key and p.revision = r.revision and p.run = p_runs[i]
         and (p.state = 'running' or p.state = 'complete' and p_outcomes[i] = 'complete');
      ended := found;
    end if;
    if ended then
      update pawl.runs x set state = p_outcomes[i], error = nullif(p_errors[i], ''), ended_at = at,
             done = coalesce(nullif(p_done[i], -1), x.done), total = coalesce(nullif(p_total[i], -1), x.total) where x.id = p_runs[i];
      update pawl.locks o set grant_id = null, holder = null, key = null, expires_at = null, renewed_at = at where o.name = l.name;
      insert into pawl.tenures (lock, token, grant_id, holder, key, acquired_at, ended_at, how, beats, longest_gap)
      values (l.name, l.token, l.grant_id, l.holder, l.key, l.acquired_at, at, 'released', l.beats, l.longest_gap);
    elsif p_strict then
      perform pawl.must(false, 'PW002');
    end if;
    if exists (select from pawl.periods x where x.lock = p_locks[i] and x.ended_at is null and x.state = 'open') then
      waiting := waiting || p_locks[i];
    end if;
    return next;
  end loop;
  if waiting <> '{}' then perform pawl.leave(waiting); end if;
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
  k pawl.clock; l pawl.locks; p pawl.periods; lasts interval; tok bigint; at timestamptz; courier bigint; patient boolean;
begin
  patient := pawl.patient(p_wait_ms);
  insert into pawl.lanes as n (lock) select distinct unnest(p_locks) order by 1 on conflict (lock) do update set seq = n.seq + 1;
  select * into k from pawl.clock c where c.incarnation = pawl.incarnation();
  if not found then return; end if;
  for i in 1 .. cardinality(p_runs) loop
    select * into p from pawl.periods x where x.lock = p_locks[i] and x.ended_at is null and x.state = 'open'
     order by x.scheduled_at, x.job, x.key, x.revision limit 1;        -- one that waits for its retry holds the line
    continue when not found or p.job <> all (p_jobs) or p.not_before > clock_timestamp();
    select * into l from pawl.locks o where o.name = p_locks[i] and o.token = p_tokens[i] and o.grant_id = p_runs[i] for update skip locked;
    at := clock_timestamp();
    continue when not found or l.expires_at <= at;
    update pawl.periods x set state = 'complete', reason = null, ended_at = at from pawl.runs r
     where r.id = p_runs[i] and r.ended_at is null and x.job = r.job and x.key = r.key and x.revision = r.revision
       and x.run = p_runs[i] and x.state = 'running' returning r.delivery into courier;
    continue when not found;
    update pawl.runs x set state = 'complete', ended_at = at, done = coalesce(nullif(p_done[i], -1), x.done), total = coalesce(nullif(p_total[i], -1), x.total)
     where x.id = p_runs[i];
    lasts := p_ttls[array_position(p_jobs, p.job)] * interval '1 ms';
    update pawl.locks o
       set token = pawl.next_token(l.token, l.incarnation = k.incarnation, k.floor), incarnation = k.incarnation, grant_id = p_fresh[i],
           holder = p_holder, ttl = lasts, beats = 0, longest_gap = '0', acquired_at = at, renewed_at = at, expires_at = at + lasts
     where o.name = l.name returning o.token into tok;
    insert into pawl.tenures (lock, token, grant_id, holder, key, acquired_at, ended_at, how, successor, beats, longest_gap)
    values (l.name, l.token, l.grant_id, l.holder, l.key, l.acquired_at, at, 'released', tok, l.beats, l.longest_gap);
    return next pawl.begin_run(p, p_fresh[i], tok, p_holder, courier, at, lasts);
  end loop;
end $$;
-- +goose StatementEnd

-- +goose Down
drop function pawl.handover(uuid[], text[], bigint[], uuid[], text, text[], bigint[], bigint[], bigint[], int),
              pawl.finish(uuid[], text[], bigint[], text[], bigint[], text[], bigint[], bigint[], boolean, int),
              pawl.start(text[], uuid[], bigint[], text, text[], bigint[], bigint, bigint[], int),
              pawl.begin_run(pawl.periods, uuid, bigint, text, bigint, timestamptz, interval), pawl.patient(int);
drop type pawl.started;

-- The functions of the protocol. What they raise ends in its SQLSTATE, which psql doesn't show by itself. Every statement that decides by time is peek (no lock), lock, judge: the clock
-- is read after the row is ours, since an UPDATE that had to wait isn't judged again when the blocker rolls back.

-- +goose Up

-- +goose StatementBegin
create function pawl.now_us() returns bigint language sql volatile as
$$ select (extract(epoch from clock_timestamp()) * 1000000)::bigint $$;
-- +goose StatementEnd

-- Where start times differ per node this function returns a constant instead.
-- +goose StatementBegin
create function pawl.incarnation() returns bigint language sql stable as
$$ select (extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint $$;
-- +goose StatementEnd

-- How long a fetched delivery may take to reach start.
-- +goose StatementBegin
create function pawl.start_grace() returns interval language sql stable as
$$ select coalesce(nullif(current_setting('pawl.start_grace', true), ''), '10 s')::interval $$;
-- +goose StatementEnd

-- A transaction that issues a token waits for its flush, whatever the session says: a crash of one backend loses what
-- wasn't flushed and leaves the incarnation as it is.
-- +goose StatementBegin
create function pawl.flushed() returns void language plpgsql volatile as $$
begin
  if current_setting('synchronous_commit') = 'off' then perform set_config('synchronous_commit', 'local', true); end if;
end $$;
-- +goose StatementEnd

-- prev is null at birth; same: the row's incarnation is the clock's. Call pawl.flushed in the same transaction.
-- +goose StatementBegin
create function pawl.next_token(prev bigint, same boolean, floor bigint) returns bigint language sql volatile as
$$ select greatest(prev + case when same then 1 else 1000000 end, pawl.now_us(), floor + 1) $$;
-- +goose StatementEnd

-- +goose StatementBegin
create function pawl.must(ok boolean, code text) returns boolean language plpgsql as $$
begin
  if ok is not true then raise exception 'pawl: refused [%]', code using errcode = code; end if;
  return true;
end $$;
-- +goose StatementEnd

insert into pawl.clock (incarnation, since, system_identifier)
select pawl.incarnation(), 'epoch', system_identifier from pg_control_system();

-- Every statement that issues a token reads the clock row of this incarnation; without one it grants nothing, and
-- the client comes here. A dump restored elsewhere is refused unless a person says so: the automatic call must not
-- start staging on production's periods.
-- +goose StatementBegin
create function pawl.adopt(elsewhere boolean default false) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare here bigint := (select system_identifier from pg_control_system()); c pawl.clock; up bigint;
begin
  if not elsewhere and here <> (select system_identifier from pawl.clock) then
    raise exception 'pawl: this database was restored from another server [PW005]'
      using errcode = 'PW005', hint = 'If this copy may run what it owes, say so with: pawl adopt';
  end if;
  select * into c from pawl.clock where incarnation <> pawl.incarnation() or system_identifier <> here for update;
  if found then
    -- Above the clock of whoever went before, above all tokens that the floor we know has led to, and, when others have
    -- raised it from where we stand and that is lost, above them, since we come later.
    up := greatest(pawl.now_us() + 60000000, c.floor + 1000000,
                   c.raised + 1000000 + (greatest(extract(epoch from clock_timestamp() - c.since), 0) * 500000)::bigint);
    update pawl.clock set incarnation = pawl.incarnation(), since = clock_timestamp(), system_identifier = here, floor = up, raised = up;
  end if;
end $$;
-- +goose StatementEnd

-- Deleting idle lock rows, by the pruner or by hand, raises the floor in the same statement.
-- +goose StatementBegin
create function pawl.locks_deleted() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'TRUNCATE' then
    raise exception 'pawl: locks may not be truncated, tokens would start again [PW003]' using errcode = 'PW003';
  end if;
  update pawl.clock set floor = greatest(floor, gone.token)
    from (select max(token) as token from deleted) gone where gone.token is not null;
  return null;
end $$;
-- +goose StatementEnd
create trigger deleted after delete on pawl.locks referencing old table as deleted
  for each statement execute function pawl.locks_deleted();
create trigger truncated before truncate on pawl.locks
  for each statement execute function pawl.locks_deleted();

-- +goose StatementBegin
create function pawl.prune(idle interval, most int) returns bigint language sql as $$
  with idle as materialized (
    select name from pawl.locks where grant_id is null and renewed_at < clock_timestamp() - idle
     order by name limit most for update skip locked
  ), gone as (
    delete from pawl.locks l using idle i where l.name = i.name and l.grant_id is null returning l.token
  )
  select count(*) from gone
$$;
-- +goose StatementEnd

-- What a guard raises when a token has no live lease: which of the reasons it is, the lock row as JSON in the detail,
-- and what to do. It takes no lock and answers nothing.
-- +goose StatementBegin
create function pawl.not_held(p_lock text, p_token bigint, p_hint text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare l pawl.locks; t pawl.tenures; code text := 'PW002'; why text; ended timestamptz;
begin
  select * into l from pawl.locks where name = p_lock;
  select * into t from pawl.tenures where lock = p_lock and token = p_token;
  ended := coalesce(t.ended_at, case when l.token = p_token then coalesce(l.expires_at, l.renewed_at) end);
  if l.token > p_token then
    code := 'PW001';
    why := format('token %s is stale: %s is current, %s', p_token, l.token, case
      when l.grant_id is null then 'held by nobody now'
      when l.expires_at <= clock_timestamp() then format('held by %s until its lease ended', l.holder)
      else format('held by %s', l.holder) end);
  elsif l.name is null and t.lock is null then
    why := 'no such lock';
  elsif ended is null then
    why := format('token %s was never issued: %s is current', p_token, l.token);
  else
    why := format('the lease with token %s ended at %s%s and nobody has taken it', p_token,
      to_char(ended at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS "UTC"'),
      case t.how when 'released' then ', released,' when 'forced' then ', released by force,' else '' end);
  end if;
  raise exception 'pawl: lock %: % [%]', p_lock, why, code
    using errcode = code, hint = p_hint,
          detail = json_build_object('current', coalesce(l.token, 0), 'holder', coalesce(l.holder, ''))::text;
end $$;
-- +goose StatementEnd

-- Ties the transaction to a live lease: no acquire, start or hand-over (FOR UPDATE) passes before it ends; a
-- renewal does. It raises instead of answering with no row: an error frees the row lock at once, even if the
-- client's ROLLBACK never comes. The detail is JSON: what the lock row says now.
-- The settings are local to the transaction: a client that falls silent for as long as a lease lasts, or dies inside
-- a statement, is ended; the sweep finds the backend by its name; pawl.enforce finds the token.
-- +goose StatementBegin
create function pawl.guard(p_lock text, p_token bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare until timestamptz; lasts interval; lease text; done text;
begin
  select expires_at, ttl into until, lasts from pawl.locks
   where name = p_lock and token = p_token and grant_id is not null for key share;
  if until is null or until <= clock_timestamp() then      -- after the wait, on the locked row
    perform pawl.not_held(p_lock, p_token, 'Stop writing. To go on, acquire the lock.');
  end if;
  -- The whole TTL, never the time left: that would end a holder that renews all along; 0 would mean never. Assignments, since
  -- PERFORM is a statement each time, and these are most of what a guard costs.
  done := set_config('idle_in_transaction_session_timeout',
    least(greatest(extract(epoch from coalesce(lasts, '30 s')) * 1000, 1), 2147483647)::int::text, true);
  if version() ~ '-linux' then done := set_config('client_connection_check_interval', '1000', true); end if;   -- others may refuse it
  done := set_config('application_name', 'pawl ' || p_token, true);
  lease := nullif(current_setting('pawl.lease', true), '');
  done := set_config('pawl.lease', case when lease is null then jsonb_build_object(p_lock, p_token)::text
    else (lease::jsonb || jsonb_build_object(p_lock, p_token))::text end, true);
end $$;
-- +goose StatementEnd

-- A guard that goes with one statement in one round trip, as a transaction of their own: nothing in it can fall silent, so
-- that it sets less. Its operators say where they are from, since a function that sets its search_path pays for that at each
-- call. PW006: the session's default isn't READ COMMITTED, begin a transaction that is.
-- +goose StatementBegin
create function pawl.guard_one(p_lock text, p_token bigint) returns void language plpgsql security definer as $$
declare until timestamptz; done text;
begin
  if pg_catalog.current_setting('transaction_isolation') operator(pg_catalog.<>) 'read committed' then
    raise exception 'pawl: one guarded statement wants READ COMMITTED [PW006]' using errcode = 'PW006';
  end if;
  select expires_at into until from pawl.locks
   where name operator(pg_catalog.=) p_lock and token operator(pg_catalog.=) p_token and grant_id is not null for key share;
  if until is null or until operator(pg_catalog.<=) pg_catalog.clock_timestamp() then      -- after the wait, on the locked row
    perform pawl.not_held(p_lock, p_token, 'Stop writing. To go on, acquire the lock.');
  end if;
  if pg_catalog.strpos(pg_catalog.version(), '-linux') operator(pg_catalog.>) 0 then
    done := pg_catalog.set_config('client_connection_check_interval', '1000', true);
  end if;
  done := pg_catalog.set_config('application_name', pg_catalog.concat('pawl ', p_token), true);
  done := pg_catalog.set_config('pawl.lease', pg_catalog.json_build_object(p_lock, p_token)::pg_catalog.text, true);
end $$;
-- +goose StatementEnd

-- The same without the time: sent in one batch with COMMIT (a savepoint may have taken the first guard with it).
-- +goose StatementBegin
create function pawl.guard_again(p_lock text, p_token bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform from pawl.locks where name = p_lock and token = p_token and grant_id is not null for key share;
  if not found then
    perform pawl.not_held(p_lock, p_token, 'Nothing was committed. To go on, acquire the lock.');
  end if;
end $$;
-- +goose StatementEnd

-- Statement trigger of `pawl protect`: tg_argv[0] a lock or prefix*, tg_argv[1] log|enforce. The setting pawl.lease
-- is {"lock": token, …}, local to the transaction. No time test: at REPEATABLE READ it would refuse a holder that
-- renews all along; the row lock is what keeps the order. In log mode it takes no row lock: it may neither wait
-- nor fail, also not with 40001 on a snapshot that a takeover has left behind.
-- +goose StatementBegin
create function pawl.enforce() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  leases jsonb := coalesce(nullif(current_setting('pawl.lease', true), ''), '{}')::jsonb;
  pat text := tg_argv[0]; code text := 'PW003'; l text; k bigint; l1 text; k1 bigint; cur pawl.locks;
  tab text := tg_table_schema || '.' || tg_table_name;
begin
  for l, k in select key, value::bigint from jsonb_each_text(leases)
               where key = pat or right(pat, 1) = '*' and starts_with(key, left(pat, -1)) order by key loop
    if tg_argv[1] = 'enforce' then
      perform from pawl.locks where name = l and token = k and grant_id is not null for key share;
    else
      perform from pawl.locks where name = l and token = k and grant_id is not null;
    end if;
    if found then return null; end if;
    code := 'PW001'; l1 := l; k1 := k;
  end loop;
  select * into cur from pawl.locks where name = coalesce(l1, pat);
  if tg_argv[1] = 'enforce' then
    raise exception 'pawl: % on % refused: needs a current lease on % [%]', tg_op, tab, pat, code
      using errcode = code,
            detail = json_build_object('current', coalesce(cur.token, 0), 'holder', coalesce(cur.holder, ''),
                                       'target', tab, 'statement', tg_op)::text,
            hint = 'Write inside a transaction that pawl guards, or remove the protection with: pawl protect --remove';
  end if;
  insert into pawl.refusals (lock, token, current, holder, target, statement, passed, nth)
  values (coalesce(l1, pat), k1, cur.token, (select holder from pawl.tenures where lock = l1 and token = k1), tab, tg_op, true, null);
  return null;
end $$;
-- +goose StatementEnd

-- Check (many writes by one holder) and, over several targets, Claim: the mark may not be above the token, and is
-- raised to it. An equal mark takes SHARE only: writers with the same token don't queue on each other.
-- +goose StatementBegin
create function pawl.fence(p_lock text, p_token bigint, variadic p_targets text[]) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare t text; m pawl.fences;
begin
  for t in select distinct unnest(p_targets) collate "C" order by 1 loop
    perform from pawl.fences where target = t and lock = p_lock and last_token = p_token for share;
    continue when found;
    insert into pawl.fences as f (target, lock, last_token) values (t, p_lock, p_token)
    on conflict (target) do update set last_token = excluded.last_token
     where f.lock = excluded.lock and f.last_token <= excluded.last_token;
    continue when found;
    select * into m from pawl.fences where target = t;
    if m.lock <> p_lock then
      raise exception 'pawl: target % belongs to lock %, not to % [PW004]', t, m.lock, p_lock using errcode = 'PW004',
        detail = json_build_object('target', t)::text,
        hint = 'Tokens of different locks do not compare: write this target under its own lock.';
    end if;
    raise exception 'pawl: target % has seen token %, % is stale [PW001]', t, m.last_token, p_token
      using errcode = 'PW001', detail = json_build_object('current', m.last_token, 'holder', '', 'target', t)::text;
  end loop;
end $$;
-- +goose StatementEnd

-- Once per token: the mark must be below the token. Never on a target that is claimed: then nobody could write.
-- +goose StatementBegin
create function pawl.once(p_lock text, p_token bigint, p_target text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare m pawl.fences;
begin
  insert into pawl.fences as f (target, lock, last_token) values (p_target, p_lock, p_token)
  on conflict (target) do update set last_token = excluded.last_token
   where f.lock = excluded.lock and f.last_token < excluded.last_token;
  if found then return; end if;
  select * into m from pawl.fences where target = p_target;
  if m.lock <> p_lock then
    raise exception 'pawl: target % belongs to lock %, not to % [PW004]', p_target, m.lock, p_lock using errcode = 'PW004',
      detail = json_build_object('target', p_target)::text,
      hint = 'Tokens of different locks do not compare: write this target under its own lock.';
  end if;
  raise exception 'pawl: target % already has token % or a newer one [PW001]', p_target, p_token
    using errcode = 'PW001', detail = json_build_object('current', m.last_token, 'holder', '', 'target', p_target)::text;
end $$;
-- +goose StatementEnd

-- Advice only: the answer is old when it arrives. last_token is null where the target was never written.
-- +goose StatementBegin
create function pawl.check(p_lock text, p_token bigint, p_target text, out current boolean, out last_token bigint)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  select f.last_token into last_token from pawl.fences f where f.target = p_target;
  current := coalesce(last_token <= p_token, true)
    and coalesce((select f.lock = p_lock from pawl.fences f where f.target = p_target), true);
end $$;
-- +goose StatementEnd

-- Records a refused write, in a transaction of its own: the refused one is gone. late_by is null while the lease lives.
-- +goose StatementBegin
create function pawl.refuse(p_lock text, p_token bigint, p_target text, p_statement text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  insert into pawl.refusals (lock, token, current, holder, late_by, target, statement)
  select p_lock, p_token, l.token, coalesce(t.holder, case when l.token = p_token then l.holder end),
         case when e.at <= n.now then n.now - e.at end, p_target, left(p_statement, 500)
    from (select clock_timestamp() as now) n
    left join pawl.locks l on l.name = p_lock
    left join pawl.tenures t on t.lock = p_lock and t.token = p_token
    cross join lateral (select coalesce(t.ended_at, case when l.token = p_token then l.expires_at end) as at) e;
end $$;
-- +goose StatementEnd

-- One try to take a lock; it never waits. A function, since a dozen small statements with kept plans cost less than one
-- large one. Every statement in it has a snapshot of its own: peek (who is turned away writes nothing), lock, judge.
-- outcome: granted, held (by whom; may be past its end while a guarded transaction drains), again (another's birth has
-- just won, or some transaction has the row), adopt (the server has restarted), ended (this grant is over), or begin
-- (the transaction isn't READ COMMITTED: ask inside one that is).
-- +goose StatementBegin
create function pawl.acquire(p_name text, p_holder text, p_grant uuid, p_ttl interval, p_key text, p_reenter boolean, p_request text default null,
  out outcome text, out token bigint, out holder text, out acquired_at timestamptz, out expires_at timestamptz)
language plpgsql volatile as $$
#variable_conflict use_column
declare
  c record; l pawl.locks; own boolean; at timestamptz;
begin
  if coalesce(p_name, '') = '' or p_grant is null or p_ttl is null or p_ttl <= '0' then
    raise exception 'pawl: acquire wants a name, a grant id and a ttl above 0, not %, % and % [22023]', coalesce(p_name, 'null'), coalesce(p_grant::text, 'null'), coalesce(p_ttl::text, 'null')
      using errcode = '22023', hint = 'A grant id is a UUID that you make for this acquisition: gen_random_uuid().';
  end if;
  if current_setting('transaction_isolation') <> 'read committed' then
    outcome := 'begin'; return;
  end if;
  if current_setting('synchronous_commit') = 'off' then perform pawl.flushed(); end if;
  select k.incarnation as now_incarnation, k.floor, o.*, exists (select from pawl.tenures e where e.grant_id = p_grant and e.lock = p_name) as over,
         (select e.how from pawl.tenures e where e.lock = o.name and e.token = o.token) as how into c
    from pawl.clock k left join pawl.locks o on o.name = p_name where k.incarnation = pawl.incarnation();
  if not found then outcome := 'adopt'; return; end if;
  token := coalesce(c.token, 0); holder := c.holder; acquired_at := c.acquired_at; expires_at := c.expires_at;

  if c.name is null then           -- birth: it waits for nobody's, or it would grant to a caller that has gone
    if c.over then outcome := 'ended'; return; end if;
    outcome := 'again';
    if not pg_try_advisory_xact_lock(hashtext('pawl.locks'), hashtext(p_name)) then return; end if;
    at := clock_timestamp();
    insert into pawl.locks as n (name, token, incarnation, grant_id, holder, key, request_id, ttl, acquired_at, renewed_at, expires_at)
    select p_name, pawl.next_token(null, true, k.floor), k.incarnation, p_grant, p_holder, p_key, p_request, p_ttl, at, at, at + p_ttl
      from pawl.clock k where k.incarnation = pawl.incarnation() and not exists (select from pawl.locks x where x.name = p_name)
    on conflict (name) do nothing
    returning n.token, n.holder, n.acquired_at, n.expires_at into token, holder, acquired_at, expires_at;
    if found then outcome := 'granted'; end if;
    return;
  end if;

  if c.grant_id <> p_grant and c.expires_at > clock_timestamp() and not (p_reenter and c.holder = p_holder and c.key = p_key) then
    outcome := case when c.over then 'ended' else 'held' end; return;
  end if;
  select * into l from pawl.locks o where o.name = p_name for update skip locked;
  if not found then                -- somebody has the row: a beat, a guarded transaction, another who takes it
    outcome := case when c.grant_id <> p_grant and not coalesce(p_reenter and c.holder = p_holder and c.key = p_key, false) then 'held' else 'again' end;
    return;
  end if;
  at := clock_timestamp();         -- after the lock, for the row that is ours
  own := coalesce(p_reenter and l.holder = p_holder and l.key = p_key, false);
  if l.grant_id = p_grant then
    if l.expires_at <= at then outcome := 'ended'; return; end if;
    update pawl.locks o set renewed_at = at, expires_at = at + p_ttl, ttl = p_ttl, holder = p_holder, key = p_key,
           longest_gap = greatest(o.longest_gap, at - o.renewed_at)
     where o.name = p_name returning o.token, o.holder, o.acquired_at, o.expires_at into token, holder, acquired_at, expires_at;
    outcome := 'granted'; return;
  end if;
  if l.grant_id is not null and l.expires_at > at and not own then
    outcome := 'held'; token := l.token; holder := l.holder; acquired_at := l.acquired_at; expires_at := l.expires_at; return;
  end if;
  if c.over or (l.token, l.grant_id) is distinct from (c.token, c.grant_id)   -- the row has moved since the peek: look again
     and exists (select from pawl.tenures e where e.grant_id = p_grant and e.lock = p_name) then
    outcome := 'ended'; return;
  end if;
  update pawl.locks o
     set token = pawl.next_token(l.token, l.incarnation = c.now_incarnation, c.floor), incarnation = c.now_incarnation, grant_id = p_grant,
         holder = p_holder, key = p_key, request_id = p_request, ttl = p_ttl, acquired_at = at, renewed_at = at, expires_at = at + p_ttl, beats = 0, longest_gap = '0'
   where o.name = p_name returning o.token, o.holder, o.acquired_at, o.expires_at into token, holder, acquired_at, expires_at;
  if l.grant_id is not null then   -- history: the lease that was found expired, or that its holder takes again
    insert into pawl.tenures (lock, token, grant_id, holder, key, request_id, acquired_at, expires_at, ended_at, how, successor, beats, longest_gap)
    values (l.name, l.token, l.grant_id, l.holder, l.key, l.request_id, l.acquired_at, l.expires_at, least(l.expires_at, at),
            case when own then 'reacquired' else 'taken_over' end, acquire.token, l.beats, l.longest_gap);
  elsif c.how in ('expired', 'forced') or l.token <> c.token or c.grant_id is not null then   -- or that the sweep or a person has ended
    update pawl.tenures e set how = case e.how when 'expired' then 'taken_over' else e.how end, successor = acquire.token
     where e.lock = p_name and e.token = l.token and e.how in ('expired', 'forced');
  end if;
  outcome := 'granted';
end $$;
-- +goose StatementEnd

-- Gives a lock back. The row stays, so that tokens go on growing. p_token null: whichever this grant has. It awaits no
-- flush, since a release lost in a crash is an expiry, and wakes the lane or the caller that waits. No answer (how is null): not held; begin: as above.
-- +goose StatementBegin
create function pawl.release(p_name text, p_token bigint, p_grant uuid, out how text, out held double precision)
language plpgsql volatile as $$
declare l record; at timestamptz; done text;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    how := 'begin'; return;
  end if;
  select o.*, exists (select from pawl.lanes n where n.lock = p_name and n.not_before is not null)
           or exists (select from pawl.waiters w where w.lock = p_name and w.until > clock_timestamp()) as wanted into l from pawl.locks o
   where o.name = p_name and o.grant_id = p_grant and (p_token is null or o.token = p_token) for no key update of o;
  if not found then return; end if;
  at := clock_timestamp();
  how := case when l.expires_at > at then 'released' else 'expired' end;
  held := extract(epoch from least(l.expires_at, at) - l.acquired_at);
  update pawl.locks o set grant_id = null, holder = null, key = null, request_id = null, expires_at = null, renewed_at = at where o.name = p_name;
  insert into pawl.tenures (lock, token, grant_id, holder, key, request_id, acquired_at, expires_at, ended_at, how, beats, longest_gap)
  values (l.name, l.token, l.grant_id, l.holder, l.key, l.request_id, l.acquired_at, l.expires_at, least(l.expires_at, at), how, l.beats, l.longest_gap);
  done := set_config('synchronous_commit', 'off', true);
  if l.wanted then perform pg_notify('pawl_released', p_name); end if;   -- each notification takes a lock on all commits
end $$;
-- +goose StatementEnd

-- Enter: all lanes that the transaction will ever need, at once, by name.
-- +goose StatementBegin
create function pawl.lane(p_locks text[]) returns boolean language sql volatile as $$
  insert into pawl.lanes as n (lock) select distinct unnest(p_locks) collate "C" order by 1
  on conflict (lock) do update set seq = n.seq + 1;
  select true
$$;
-- +goose StatementEnd

-- Leave: last, as a statement of its own, with a snapshot taken after the lanes were granted. Makes the lane rule
-- true: when no run of a lock is running and one of its periods may run, a live delivery for that lock exists. A period whose
-- shards run counts as a run of its lock.
-- Idempotent. Only for lanes that the transaction has entered.
-- +goose StatementBegin
create function pawl.leave(p_locks text[]) returns int language plpgsql volatile as $$
declare n int; soon boolean;
begin
  with want as materialized (
    select n.lock, h.job, greatest(clock_timestamp(), h.not_before, n.not_before) as at, n.delivery
      from pawl.lanes n cross join lateral (
        select p.job, p.not_before from pawl.periods p where p.lock = n.lock and p.ended_at is null and p.waits is null and p.state = 'open'
         order by p.priority, p.scheduled_at, p.job, p.key, p.revision limit 1) h
     where n.lock = any (p_locks) and not exists (select from pawl.runs r where r.lock = n.lock and r.ended_at is null)
       and not exists (select from pawl.periods f where f.lock = n.lock and f.shards is not null and f.ended_at is null and f.state = 'running')   -- its shards run
  ), fresh as (
    insert into pawl.river_job (state, queue, kind, args, max_attempts, scheduled_at)
    select 'available', 'pawl', 'pawl.' || w.job, jsonb_build_object('job', w.job, 'lock', w.lock), 1, w.at from want w
     where not exists (select from pawl.river_job j where j.id = w.delivery   -- live, of the right kind and not too late
             and (j.state in ('available', 'scheduled', 'pending', 'retryable') and j.scheduled_at <= w.at and j.kind = 'pawl.' || w.job
               or j.state = 'running' and j.attempted_at > clock_timestamp() - pawl.start_grace()))
    returning id, args ->> 'lock' as lock, scheduled_at <= clock_timestamp() as soon
  ), noted as (
    update pawl.lanes l set delivery = f.id from fresh f where l.lock = f.lock returning f.soon
  )
  select count(*), coalesce(bool_or(noted.soon), false) into n, soon from noted;
  if soon then perform pg_notify('pawl.river_insert', '{"queue":"pawl"}'); end if;
  return n;
end $$;
-- +goose StatementEnd

-- Enter and leave, where nothing else is changed. A transaction that holds lanes may only name lanes that it holds.
-- +goose StatementBegin
create function pawl.advance(p_locks text[]) returns int language plpgsql volatile as $$
begin
  perform pawl.lane(p_locks);
  return pawl.leave(p_locks);
end $$;
-- +goose StatementEnd

-- What a run's end makes of its period.
-- +goose StatementBegin
create function pawl.after(outcome text, attempts int, max_attempts int) returns text language sql immutable as $$
  select case when outcome in ('complete', 'skipped', 'cancelled') then outcome
              when outcome in ('final', 'uncertain') then 'dead'       -- no other run
              when outcome = 'drained' or attempts < max_attempts then 'open' else 'dead' end
$$;
-- +goose StatementEnd

-- +goose Down
drop trigger deleted on pawl.locks;
drop trigger truncated on pawl.locks;
drop function pawl.after(text, int, int), pawl.advance(text[]), pawl.leave(text[]), pawl.lane(text[]), pawl.refuse(text, bigint, text, text),
              pawl.acquire(text, text, uuid, interval, text, boolean, text), pawl.release(text, bigint, uuid),
              pawl.check(text, bigint, text), pawl.once(text, bigint, text), pawl.fence(text, bigint, text[]),
              pawl.enforce(), pawl.guard_again(text, bigint), pawl.guard_one(text, bigint), pawl.guard(text, bigint), pawl.not_held(text, bigint, text), pawl.prune(interval, int),
              pawl.locks_deleted(), pawl.adopt(boolean), pawl.must(boolean, text), pawl.next_token(bigint, boolean, bigint), pawl.flushed(),
              pawl.start_grace(), pawl.incarnation(), pawl.now_us();

-- What the lock API needs beside the locks: its keys, requests that may be asked again, who waits, and what was done once.

-- +goose Up

-- Bearer keys. A row stays when its key is revoked: a database that had keys must never again look like one without.
create table pawl.keys (
    id           text collate "C" primary key,
    name         text collate "C" not null unique,
    secret       bytea not null,                    -- SHA-256
    role         text not null check (role in ('reader', 'worker', 'operator')),
    approver     boolean not null default false,
    prefix       text collate "C" not null default '',   -- of the locks that it may touch
    created_at   timestamptz not null default clock_timestamp(),
    created_by   text not null,
    expires_at   timestamptz,
    revoked_at   timestamptz,
    revoked_by   text,
    last_used_at timestamptz                        -- to the minute
);

-- Which grant a request that may be asked again has had. key: whose request it is; body: a digest of what it said.
create table pawl.idempotency (
    key             text collate "C" not null,
    lock            text collate "C" not null,
    idempotency_key text collate "C" not null,
    body            bytea not null,
    grant_id        uuid not null,
    at              timestamptz not null default clock_timestamp(),
    primary key (key, lock, idempotency_key)
);
create index idempotency_at on pawl.idempotency using brin (at);   -- for who prunes it

-- Who waits for a lock. A release notifies only when somebody does: each notification takes a lock on all commits.
create table pawl.waiters (
    id     uuid primary key,
    lock   text collate "C" not null,
    holder text,
    since  timestamptz not null default clock_timestamp(),
    until  timestamptz not null                     -- then it has gone without a word
) with (fillfactor = 50);
create index waiters_lock on pawl.waiters (lock);

-- What was done once under a lock, by a key of the caller's.
create table pawl.once_per (
    lock    text collate "C" not null,
    key     text collate "C" not null,
    token   bigint not null,
    holder  text,
    done_at timestamptz not null default clock_timestamp(),
    primary key (lock, key)
);

-- What a lock row is to a caller who comes with a holder's name, its key and a token (0: any). Who comes under another key
-- is another caller; a run's lease has no key, so it is nobody's here.
-- +goose StatementBegin
create function pawl.as_seen_by(l pawl.locks, p_holder text, p_key text, p_token bigint, p_at timestamptz) returns text language sql immutable as $$
  select case when l.name is null then 'absent'
              when l.grant_id is null then 'free'
              when l.expires_at <= p_at then 'expired'
              when (l.holder, l.key) is distinct from (p_holder, p_key) then 'another'
              when p_token not in (0, l.token) then 'other_token'
              else 'theirs' end
$$;
-- +goose StatementEnd

-- Extends the lease that a holder has under a key. outcome: renewed, absent, lost, another, other_token, free (and
-- its last holder isn't who asks), or begin: as in pawl.acquire. Peek: who is turned away takes no lock; lock, behind a beat or a takeover but not behind
-- guards; judge what is there then, by the clock of then. It ends at acquired_at + p_max_hold at the latest (null: no limit);
-- the row's ttl is what was asked for.
-- +goose StatementBegin
create function pawl.renew_as(p_name text, p_holder text, p_key text, p_token bigint, p_ttl interval, p_max_hold interval,
                              out outcome text, out lease pawl.locks) language plpgsql volatile as $$
declare at timestamptz; past text;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    outcome := 'begin'; return;
  end if;
  select * into lease from pawl.locks o where o.name = p_name;
  outcome := pawl.as_seen_by(lease, p_holder, p_key, p_token, clock_timestamp());
  if outcome = 'theirs' then
    select * into lease from pawl.locks o where o.name = p_name for no key update;
    at := clock_timestamp();
    outcome := pawl.as_seen_by(lease, p_holder, p_key, p_token, at);
  end if;
  case outcome
  when 'theirs' then
    if at >= lease.acquired_at + p_max_hold then outcome := 'lost'; return; end if;
    update pawl.locks o set expires_at = least(at + p_ttl, lease.acquired_at + p_max_hold), renewed_at = at, ttl = p_ttl, beats = o.beats + 1,
           longest_gap = greatest(o.longest_gap, at - o.renewed_at)
     where o.name = p_name returning o.* into lease;
    outcome := 'renewed';
  when 'expired' then outcome := 'lost';
  when 'another' then                                 -- one who once held it has lost it
    if exists (select from pawl.tenures t where t.lock = p_name and t.holder = p_holder and t.key = p_key and t.key <> '') then outcome := 'lost'; end if;
  when 'free' then
    select case when t.how = 'expired' or t.holder = p_holder and t.key = p_key then 'lost' end into past
      from pawl.tenures t where t.lock = p_name and t.token = lease.token;
    outcome := coalesce(past, 'free');
  else null;
  end case;
end $$;
-- +goose StatementEnd

-- Ends the lease that a holder has under a key. outcome: released, absent, free, expired, another, other_token or begin. Like
-- pawl.release it awaits no flush and wakes only who waits.
-- +goose StatementBegin
create function pawl.release_as(p_name text, p_holder text, p_key text, p_token bigint, out outcome text, out token bigint, out held double precision)
language plpgsql volatile as $$
declare l pawl.locks; at timestamptz; done text;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    outcome := 'begin'; return;
  end if;
  select * into l from pawl.locks o where o.name = p_name;
  outcome := pawl.as_seen_by(l, p_holder, p_key, p_token, clock_timestamp());
  if outcome <> 'theirs' then return; end if;
  select * into l from pawl.locks o where o.name = p_name for no key update;
  at := clock_timestamp();
  outcome := pawl.as_seen_by(l, p_holder, p_key, p_token, at);
  if outcome <> 'theirs' then return; end if;
  outcome := 'released'; token := l.token; held := extract(epoch from at - l.acquired_at);
  update pawl.locks o set grant_id = null, holder = null, key = null, request_id = null, expires_at = null, renewed_at = at where o.name = p_name;
  insert into pawl.tenures (lock, token, grant_id, holder, key, request_id, acquired_at, expires_at, ended_at, how, beats, longest_gap)
  values (l.name, l.token, l.grant_id, l.holder, l.key, l.request_id, l.acquired_at, l.expires_at, at, 'released', l.beats, l.longest_gap);
  done := set_config('synchronous_commit', 'off', true);
  if exists (select from pawl.lanes n where n.lock = p_name and n.not_before is not null)
     or exists (select from pawl.waiters w where w.lock = p_name and w.until > at) then
    perform pg_notify('pawl_released', p_name);
  end if;
end $$;
-- +goose StatementEnd

-- +goose Down
drop function pawl.release_as(text, text, text, bigint), pawl.renew_as(text, text, text, bigint, interval, interval),
              pawl.as_seen_by(pawl.locks, text, text, bigint, timestamptz);
drop table pawl.once_per, pawl.waiters, pawl.idempotency, pawl.keys;

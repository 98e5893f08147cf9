-- What one person asks for and a second one decides. The rules are here, so that they bind the page, the commands and whoever
-- calls the functions by hand. Who somebody is, the caller says; what a key may do, pawl.keys says.

-- +goose Up
create table pawl.settings (
    name       text collate "C" primary key,
    value      jsonb not null,
    changed_at timestamptz not null default clock_timestamp(),
    changed_by text not null
);

create table pawl.approvals (
    id              bigint generated always as identity primary key,
    action          text collate "C" not null check (action = 'force_release'),
    lock            text collate "C" not null,
    token           bigint not null,                -- of the lease that was seen, and no other
    reason          text not null check (char_length(btrim(reason, e' \t\r\n')) between 10 and 2000),
    kill            boolean not null default false,
    requested_by_id text collate "C" not null check (btrim(requested_by_id) <> ''),
    requested_by    text not null,
    requested_at    timestamptz not null default clock_timestamp(),
    expires_at      timestamptz not null,
    state           text collate "C" not null default 'pending' check (state in ('pending', 'approved', 'declined', 'expired', 'stale')),
    decided_by_id   text collate "C",               -- of an expired or stale one: who found it so, if anybody
    decided_by      text,
    decided_at      timestamptz,
    note            text not null default '' check (char_length(note) <= 2000),
    self            boolean not null default false, -- one person was both: single operator
    check (expires_at between requested_at + interval '1 min' and requested_at + interval '1 h'),
    check ((state = 'pending') = (decided_at is null)),
    check (not self or state = 'approved'),
    constraint approvals_two_people check (state <> 'approved' or decided_by_id is not null and (decided_by_id = requested_by_id) = self),
    constraint approvals_note check (state <> 'declined' or decided_by_id is not null and btrim(note, e' \t\r\n') <> '')
);
create index approvals_state on pawl.approvals (state, id);

-- A team of one may set this: then who asks also approves.
-- +goose StatementBegin
create function pawl.single_operator() returns boolean language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce((select value = 'true' from pawl.settings where name = 'single_operator'), false)
$$;
-- +goose StatementEnd

-- Whether a person may ask ('request') or decide ('approve') for a lock ('': for all of them). A key may what its row says now;
-- of anybody else it is the caller who knows. 'anonymous' may everything while no key was ever made.
-- +goose StatementBegin
create function pawl.person_may(p_id text, p_right text, p_says boolean, p_lock text) returns boolean
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select case when k.id is not null then
                k.revoked_at is null and (k.expires_at is null or k.expires_at > clock_timestamp()) and starts_with(p_lock, k.prefix)
                and case p_right when 'approve' then k.approver else k.role = 'operator' end
              else coalesce(p_says, false) or p_id = 'anonymous' and not exists (select from pawl.keys) end
    from (select 1) one left join pawl.keys k on k.id = p_id
$$;
-- +goose StatementEnd

-- Whatever writes to the table: a request begins open and now, only an open one changes, and nothing but its decision; approved
-- is one in time whose lease this transaction, or an earlier one since the request, has released by force.
-- +goose StatementBegin
create function pawl.approvals_kept() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare wrong text;
begin
  if tg_op = 'INSERT' then
    wrong := case when new.state <> 'pending' then 'a request begins as pending'
                  when new.requested_at > clock_timestamp() then 'a request is made now, not later' end;
  else
    wrong := case
      when old.state <> 'pending' then format('it is %s, which stays', old.state)
      when (new.id, new.action, new.lock, new.token, new.reason, new.kill, new.requested_by_id, new.requested_by, new.requested_at, new.expires_at)
           is distinct from (old.id, old.action, old.lock, old.token, old.reason, old.kill, old.requested_by_id, old.requested_by, old.requested_at, old.expires_at)
        then 'what was asked for stays as it was'
      when new.state <> 'approved' then null
      when old.expires_at <= clock_timestamp() then 'its time is over'
      when new.self and not pawl.single_operator() then 'who asks can''t approve'
      when not exists (select from pawl.tenures t where t.lock = new.lock and t.token = new.token and t.how = 'forced' and t.ended_at >= new.requested_at)
        then 'its lease was not released' end;
  end if;
  if wrong is not null then
    raise exception 'pawl: approval %: % [PW007]', new.id, wrong
      using errcode = 'PW007', hint = 'Use pawl.request_release and pawl.decide_release.';
  end if;
  return new;
end $$;
-- +goose StatementEnd
create trigger kept before insert or update on pawl.approvals for each row execute function pawl.approvals_kept();

-- Decides a request. outcome: approved (and the lease is released), declined, absent, decided (before), expired, stale (the
-- lease has ended meanwhile), not_approver, same_person, or begin (the transaction isn't READ COMMITTED). Who has asked may
-- take it back: that is a decline. One transaction has the decision, the release, its tenure and the audit. The lock's row is
-- taken as a beat takes it: no guard holds it up, and from the commit no new guard and no renewal passes. Terminating what
-- the holder has open is for the caller, afterwards.
-- +goose StatementBegin
create function pawl.decide_release(p_request bigint, p_id text, p_by text, p_approver boolean, p_approve boolean, p_note text default '', out outcome text)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare a pawl.approvals; l pawl.locks; at timestamptz; own boolean;
begin
  if coalesce(btrim(p_id), '') = '' or coalesce(btrim(p_by), '') = '' or p_approve is null then
    raise exception 'pawl: a decision wants a person''s id and name, and whether it is a yes [22023]' using errcode = '22023';
  end if;
  if current_setting('transaction_isolation') <> 'read committed' then outcome := 'begin'; return; end if;
  perform pawl.flushed();
  select * into a from pawl.approvals where id = p_request for update;   -- of two who decide, one waits and finds it decided
  if not found then outcome := 'absent'; return; end if;
  if a.state <> 'pending' then
    outcome := case when a.state in ('expired', 'stale') then a.state else 'decided' end; return;
  end if;
  own := a.requested_by_id = p_id;
  if pawl.person_may(p_id, 'approve', p_approver, a.lock) is not true and (p_approve or not own) then
    outcome := 'not_approver'; return;
  end if;
  if p_approve and own and not pawl.single_operator() then outcome := 'same_person'; return; end if;

  if p_approve then
    select * into l from pawl.locks o where o.name = a.lock and o.token = a.token and o.grant_id is not null for no key update;
  end if;
  at := clock_timestamp();         -- after the waits
  outcome := case when a.expires_at <= at then 'expired' when not p_approve then 'declined' when l.name is null then 'stale' else 'approved' end;
  if outcome = 'approved' then
    update pawl.locks o set grant_id = null, holder = null, key = null, request_id = null, expires_at = null, renewed_at = at where o.name = a.lock;
    insert into pawl.tenures (lock, token, grant_id, holder, key, request_id, acquired_at, expires_at, ended_at, how, beats, longest_gap)
    values (l.name, l.token, l.grant_id, l.holder, l.key, l.request_id, l.acquired_at, l.expires_at, at, 'forced', l.beats, l.longest_gap);
    perform pg_notify('pawl_released', a.lock);
  end if;
  update pawl.approvals o set state = outcome, decided_by_id = p_id, decided_by = p_by, decided_at = at, note = coalesce(p_note, ''),
         self = own and outcome = 'approved' where o.id = a.id;
  if outcome in ('approved', 'declined') then
    insert into pawl.audit (actor, action, lock, token, reason, approver, detail)
    select case outcome when 'approved' then a.requested_by else p_by end, case outcome when 'approved' then 'force_release' else 'release_decline' end,
           a.lock, a.token, case outcome when 'approved' then a.reason else p_note end, case outcome when 'approved' then p_by end,
           jsonb_build_object('approval', a.id, 'requested_by_id', a.requested_by_id, 'decided_by_id', p_id)
           || case outcome when 'approved' then jsonb_build_object('holder', l.holder, 'kill', a.kill, 'note', coalesce(p_note, ''), 'single_operator', own)
              else jsonb_build_object('requested_by', a.requested_by) end;
  end if;
end $$;
-- +goose StatementEnd

-- Asks for the forced release of one lease. outcome: pending, approved (at once: single operator, and who asks may approve),
-- absent (no such lock), not_held (the token has no lease), not_operator (a key that may not ask), or begin.
-- +goose StatementBegin
create function pawl.request_release(p_lock text, p_token bigint, p_reason text, p_kill boolean, p_id text, p_by text, p_approver boolean,
  p_valid interval default '15 min', out outcome text, out request bigint)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare l pawl.locks; at timestamptz;
begin
  if coalesce(btrim(p_id), '') = '' or coalesce(btrim(p_by), '') = '' then
    raise exception 'pawl: a request wants a person''s id and name [22023]' using errcode = '22023';
  end if;
  if current_setting('transaction_isolation') <> 'read committed' then outcome := 'begin'; return; end if;
  perform pawl.flushed();
  if pawl.person_may(p_id, 'request', true, p_lock) is not true then outcome := 'not_operator'; return; end if;
  select * into l from pawl.locks where name = p_lock;
  if not found then outcome := 'absent'; return; end if;
  if l.grant_id is null or l.token is distinct from p_token then outcome := 'not_held'; return; end if;
  at := clock_timestamp();
  update pawl.approvals set state = 'expired', decided_at = at where id in (   -- those that nobody came for
    select id from pawl.approvals where state = 'pending' and expires_at <= at order by id limit 100 for update skip locked);
  insert into pawl.approvals (action, lock, token, reason, kill, requested_by_id, requested_by, requested_at, expires_at)
  values ('force_release', p_lock, p_token, p_reason, coalesce(p_kill, false), p_id, p_by, at, at + p_valid) returning id into request;
  insert into pawl.audit (actor, action, lock, token, reason, detail)
  values (p_by, 'release_request', p_lock, p_token, p_reason, jsonb_build_object('approval', request, 'requested_by_id', p_id, 'holder', l.holder, 'kill', coalesce(p_kill, false)));
  outcome := 'pending';
  if pawl.single_operator() and pawl.person_may(p_id, 'approve', p_approver, p_lock) then
    outcome := pawl.decide_release(request, p_id, p_by, p_approver, true);
    if outcome = 'stale' then outcome := 'not_held'; end if;
  end if;
end $$;
-- +goose StatementEnd

-- Lets people approve what they have asked for themselves, or stops that. outcome: set, or not_approver.
-- +goose StatementBegin
create function pawl.set_single_operator(p_on boolean, p_id text, p_by text, p_approver boolean, out outcome text)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if p_on is null or coalesce(btrim(p_id), '') = '' or coalesce(btrim(p_by), '') = '' then
    raise exception 'pawl: the setting wants on or off, and a person''s id and name [22023]' using errcode = '22023';
  end if;
  if pawl.person_may(p_id, 'approve', p_approver, '') is not true then outcome := 'not_approver'; return; end if;
  insert into pawl.settings as s (name, value, changed_by) values ('single_operator', to_jsonb(p_on), p_by)
  on conflict (name) do update set value = excluded.value, changed_at = clock_timestamp(), changed_by = excluded.changed_by;
  insert into pawl.audit (actor, action, detail) values (p_by, 'single_operator', jsonb_build_object('on', p_on, 'by_id', p_id));
  outcome := 'set';
end $$;
-- +goose StatementEnd

-- +goose Down
drop trigger kept on pawl.approvals;
drop function pawl.set_single_operator(boolean, text, text, boolean),
              pawl.request_release(text, bigint, text, boolean, text, text, boolean, interval),
              pawl.decide_release(bigint, text, text, boolean, boolean, text), pawl.approvals_kept(),
              pawl.person_may(text, text, boolean, text), pawl.single_operator();
drop table pawl.approvals, pawl.settings;

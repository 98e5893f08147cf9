-- What runs do to others, who can't check a token: each effect's intent before the call and its outcome after it; and the
-- outbox, whose messages commit with the data that they tell of.

-- +goose Up

-- A row per try: a try that has definitely failed is kept, and the next one has a key of its own.
create table pawl.effects (
    id          bigint generated always as identity primary key,
    job         text collate "C" not null,
    key         text collate "C" not null,          -- of the period
    revision    int not null,                       -- the period's key_revision: reruns find what was done before
    effect      text collate "C" not null,          -- its key within the period
    try         int not null default 1,
    idempotency_key text collate "C" not null,      -- what the receiver is sent
    state       text collate "C" not null default 'intended' check (state in ('intended', 'done', 'failed', 'uncertain', 'dropped')),
    request     text not null,                      -- JSON as it was made: compared, and shown to people
    response    text,                               -- JSON; text, since a receiver may answer what jsonb doesn't take
    error       text,
    sends       int not null default 1,             -- how often the call was begun
    run         uuid not null,                      -- that wrote the row last
    token       bigint not null,
    operation   uuid not null,
    at          timestamptz not null default clock_timestamp(),   -- of the intent: from here the receiver's key lives
    ended_at    timestamptz,                        -- done, failed or dropped
    valid_until timestamptz,
    decided_by  text,                               -- the person who said what has become of it
    reason      text,
    matched_at  timestamptz,                        -- the other side has last said so, too
    constraint effects_once unique (job, key, revision, effect, try),
    check ((ended_at is null) = (state in ('intended', 'uncertain')))
);
create index effects_open on pawl.effects (state, id) where state <> 'done';
create index effects_list on pawl.effects (job, id);
create index effects_job on pawl.effects (job, at);
create index effects_receipt on pawl.effects (idempotency_key);

-- What a reconciliation has found and not found again in order since.
create table pawl.effect_differences (
    job             text collate "C" not null,      -- whose effects were compared
    idempotency_key text collate "C" not null,
    kind            text not null check (kind in ('absent', 'stray', 'differs')),
    effect          bigint,                         -- pawl.effects.id; null: there is none of that key
    detail          text,
    first_at        timestamptz not null default clock_timestamp(),
    last_at         timestamptz not null default clock_timestamp(),
    noted_at        timestamptz,                    -- since when there is an event of it
    primary key (job, idempotency_key)
);

-- The row is locked to the commit, so that numbers are commit order; never deleted, so that receivers may keep the last one.
create table pawl.outbox_keys (
    job text collate "C" not null,
    key text collate "C" not null,
    seq bigint not null,
    at  timestamptz not null,
    primary key (job, key)
);

-- A message is a period of the outbox's job, whose lock is the key's: it is delivered, retried, dead and cancelled as any.
create table pawl.outbox (
    job    text collate "C" not null,
    period text collate "C" not null,
    key    text collate "C" not null,
    seq    bigint not null,
    body   text not null,                           -- JSON
    at     timestamptz not null,
    primary key (job, period),
    unique (job, key, seq)
);
create index outbox_job on pawl.outbox (job, at);

-- Puts a message into the outbox of a stored job, as part of the caller's transaction. It enters no lane, since that would
-- hold up whoever shares it until the caller commits: replicas hear of the commit and make the delivery.
-- +goose StatementBegin
create function pawl.enqueue(p_outbox text, p_key text, p_body text, out period text, out seq bigint) language plpgsql volatile as $$
declare s pawl.schedules; its_lock text; its_at timestamptz; its_seq bigint;
begin
  if octet_length(p_key) not between 1 and 120 or octet_length(p_body) > 65536 then
    raise exception 'pawl: key of a message has % bytes, its body %: give 1 to 120, and at most 65536 [22023]', octet_length(p_key), octet_length(p_body) using errcode = '22023';
  end if;
  perform p_body::json;                             -- who lists messages reads it so
  insert into pawl.outbox_keys as k (job, key, seq, at) values (p_outbox, p_key, 1, clock_timestamp())
  on conflict (job, key) do update set seq = k.seq + 1, at = greatest(clock_timestamp(), k.at + interval '1 us')
  returning k.seq, k.at into its_seq, its_at;
  -- After that wait: who renames an outbox takes the rows of its keys along.
  select * into s from pawl.schedules x where x.job = p_outbox and x.retired_at is null and x.definition ->> 'outbox' = 'true';
  if not found then
    raise exception 'pawl: there is no outbox %: start a worker that has its job [P0002]', quote_literal(p_outbox) using errcode = 'P0002';
  end if;
  its_lock := s.lock || '#' || p_key;
  period := upper(lpad(to_hex((extract(epoch from its_at) * 1000000)::bigint), 13, '0') || substr(replace(gen_random_uuid()::text, '-', ''), 1, 13));
  seq := its_seq;
  insert into pawl.outbox (job, period, key, seq, body, at) values (p_outbox, enqueue.period, p_key, its_seq, p_body, its_at);
  insert into pawl.periods (job, key, lock, origin, start_at, end_at, scheduled_at, max_attempts, waits)
  values (p_outbox, enqueue.period, its_lock, 'outbox', its_at, its_at, its_at, (s.definition ->> 'runs')::int,
          case when s.paused_at is not null then 'paused'
               when exists (select from pawl.periods d where d.job = p_outbox and d.lock = its_lock and d.waits = 'decision') then 'dead' end);
  perform pg_notify('pawl_enqueued', its_lock);
end $$;
-- +goose StatementEnd

-- +goose Down
drop function pawl.enqueue(text, text, text);
drop table pawl.outbox, pawl.outbox_keys, pawl.effect_differences, pawl.effects;

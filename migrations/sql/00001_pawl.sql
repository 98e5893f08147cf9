-- The tables of pawl. Words and states: docs/protocol.md. Hot rows (clock, locks, lanes) are apart from history. Everything
-- lives in one schema of the user's database, so that results commit with their markers. Names are compared byte by byte
-- (collate "C"): as Go does, fast, and the same after an upgrade of the operating system, which breaks indexes of other text.

-- +goose Up

-- Which binaries may use this schema: a binary refuses only below min_binary, so that a rolling deploy and a
-- rollback work.
create table pawl.schema_info (
    one        boolean primary key default true check (one),
    version    int not null,
    min_binary int not null
);
insert into pawl.schema_info (version, min_binary) values (1, 1);

-- One row: which server start may issue tokens, and the number that every new token must pass.
create table pawl.clock (
    one               boolean primary key default true check (one),
    incarnation       bigint not null,
    since             timestamptz not null,
    floor             bigint not null default 0,
    raised            bigint not null default 0,    -- to where the last change of incarnation has raised the floor
    system_identifier bigint not null
);

-- No index of a column that a renewal changes and no foreign key to it: a renewal must stay a HOT update that no key lock
-- waits for. No check either, here, on tenures, periods and runs: the server reads it anew for each statement, a good part of its cost.
create table pawl.locks (
    name        text collate "C" primary key,
    token       bigint not null,                    -- only grows; stays when the lease ends
    incarnation bigint not null,                    -- that issued the token
    grant_id    uuid,                               -- null: free
    holder      text collate "C",
    key         text collate "C",                   -- API: its key's id, or 'anonymous'; Go: '' or the caller's; a run: null
    request_id  text,                               -- that acquired it
    ttl         interval,
    acquired_at timestamptz,
    renewed_at  timestamptz,
    expires_at  timestamptz,
    beats       int not null default 0,             -- renewals of this lease
    longest_gap interval not null default '0'       -- between two of them
) with (fillfactor = 50, vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- One row per lease, written when it ends; while it lives the lock row says the same.
create table pawl.tenures (
    lock        text collate "C" not null,
    token       bigint not null,
    grant_id    uuid not null,
    holder      text collate "C",
    key         text collate "C",
    request_id  text,
    acquired_at timestamptz,
    expires_at  timestamptz,                        -- when it would have ended
    ended_at    timestamptz not null,
    how         text not null,                      -- released, expired, taken_over, reacquired, forced
    successor   bigint,
    beats       int not null default 0,
    longest_gap interval not null default '0',
    primary key (lock, token)
);
create unique index tenures_grant on pawl.tenures (grant_id, lock);   -- an ended grant is refused
create index tenures_ended on pawl.tenures (ended_at);   -- what was active last; written at its end, as rows come in this order
create index tenures_holder on pawl.tenures (lock, holder) where key <> '';   -- who once held it, of the API's callers
create index tenures_stale on pawl.tenures (ended_at, lock, token) where how in ('expired', 'taken_over', 'forced');
create index tenures_stale_lock on pawl.tenures ((how <> 'released'), lock, ended_at, token)   -- in an order that the primary key has no part of
 where how in ('expired', 'taken_over', 'forced');
create index tenures_open on pawl.tenures (ended_at, lock, token) where how in ('expired', 'forced') and successor is null;

-- Writes that the fence turned away, and those that a table protected in log mode let pass. nth numbers the former
-- alone: a counter reads the highest, which doesn't fall when history is pruned.
create sequence pawl.refusals_nth;
create table pawl.refusals (
    id        bigint generated always as identity primary key,
    at        timestamptz not null default clock_timestamp(),
    lock      text collate "C",
    token     bigint,
    current   bigint,
    holder    text collate "C",
    late_by   interval,
    target    text collate "C",
    statement text,
    passed    boolean not null default false,       -- log mode: it was written all the same
    nth       bigint default nextval('pawl.refusals_nth'),
    check (passed = (nth is null))
);
alter sequence pawl.refusals_nth owned by pawl.refusals.nth;
create unique index refusals_counted on pawl.refusals (nth) where nth is not null;
create index refusals_kind on pawl.refusals (passed, id);      -- a flood of one kind doesn't bury the other
create index refusals_at on pawl.refusals (at);
create index refusals_lock on pawl.refusals (lock, passed, id);
create index refusals_holder on pawl.refusals (holder, passed, id);
create index refusals_token on pawl.refusals (lock, token, id) where not passed;

-- The highest token that a target has seen, and the lock whose token it was: tokens of different locks don't compare.
create table pawl.fences (
    target     text collate "C" primary key,
    lock       text collate "C" not null,
    last_token bigint not null
) with (fillfactor = 50);

-- A job's stored definition and how far it has been planned.
create table pawl.schedules (
    job        text collate "C" primary key,
    app        text not null,
    definition jsonb not null,
    lock       text collate "C" not null,
    watermark  timestamptz not null,
    next_at    timestamptz,                         -- null: nothing is due by itself
    created_at timestamptz not null default clock_timestamp(),
    changed_at timestamptz not null default clock_timestamp(),
    retired_at timestamptz
) with (fillfactor = 50);
create index schedules_due on pawl.schedules (next_at) where retired_at is null;

create table pawl.periods (
    job          text collate "C" not null,
    key          text collate "C" not null,
    revision     int not null default 1,
    lock         text collate "C" not null,                     -- written when planned, never changed
    state        text not null default 'open',      -- open, running, complete, dead, missed, skipped, held, cancelled
    reason       text,
    start_at     timestamptz not null,
    end_at       timestamptz not null,
    scheduled_at timestamptz not null,
    last_at      timestamptz,                       -- a stretch of ticks in one row: its last tick
    ticks        int not null default 1,            -- and how many
    not_before   timestamptz,
    attempts     smallint not null default 0,
    max_attempts smallint not null default 6,
    run          uuid,
    token        bigint,
    started_at   timestamptz,
    ended_at     timestamptz,                       -- null: open, running or held
    primary key (job, key, revision)
) with (fillfactor = 70);
create index periods_job on pawl.periods (job, scheduled_at);

-- The mutex of a lock's periods. Deleted only by who has locked it, when nothing is owed, runs or waits under its lock.
create table pawl.lanes (
    lock       text collate "C" primary key,
    seq        bigint not null default 0,           -- written by whoever enters: a stale snapshot gets 40001
    delivery   bigint,                              -- River row that has not reached start yet
    not_before timestamptz                          -- the lock was busy; never a period's backoff
) with (fillfactor = 50);

create table pawl.runs (
    id         uuid primary key,                    -- the grant id of its lease: start asked again finds its run
    job        text collate "C" not null,
    key        text collate "C" not null,
    revision   int not null,
    attempt    smallint not null,
    lock       text collate "C" not null,
    token      bigint not null,
    holder     text collate "C",
    delivery   bigint,
    state      text collate "C" not null default 'running',     -- complete, failed, timed_out, lost, drained, cancelled, skipped
    started_at timestamptz not null default clock_timestamp(),
    ended_at   timestamptz,
    done       bigint,
    total      bigint,
    resumed    boolean not null default false,      -- found a checkpoint of an earlier run
    error      text
) with (fillfactor = 70);
create unique index runs_live on pawl.runs (lock) where ended_at is null;   -- one running run a lock; the sweep starts here
create index runs_started on pawl.runs (started_at);
create index runs_period on pawl.runs (job, key, revision, attempt);

create table pawl.checkpoints (
    job       text collate "C" not null,
    key       text collate "C" not null,
    revision  int not null,
    token     bigint not null,
    operation uuid not null,
    at        timestamptz not null default clock_timestamp(),
    value     jsonb,
    primary key (job, key, revision)
) with (fillfactor = 50);

-- What people did. Nobody but the owner may change or delete a row.
create table pawl.audit (
    id     bigint generated always as identity primary key,
    at     timestamptz not null default clock_timestamp(),
    actor  text collate "C" not null,
    action text collate "C" not null,
    lock   text collate "C",
    token  bigint,
    job    text collate "C",
    period text,
    reason text,
    approver text,                                  -- the second person, where there had to be one
    detail jsonb
);
create index audit_at on pawl.audit (at);
create index audit_actor on pawl.audit (actor, id);
create index audit_action on pawl.audit (action, id);
create index audit_lock on pawl.audit (lock, id);
create index audit_job on pawl.audit (job, id);

-- +goose Down
drop table pawl.audit, pawl.checkpoints, pawl.runs, pawl.lanes, pawl.periods, pawl.schedules, pawl.fences,
           pawl.refusals, pawl.tenures, pawl.locks, pawl.clock, pawl.schema_info;

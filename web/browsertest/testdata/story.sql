-- What has happened in a shop: live leases, one late with its beat; stale claims, one taken over, whose old holder tried to
-- write, and one that nobody took; a lease released by force; runs of every state; a job that is paused, one that is retired.
insert into pawl.locks (name, token, incarnation, grant_id, holder, key, ttl, acquired_at, renewed_at, expires_at, beats, longest_gap)
values ('job:settle', 1795969942676573, 1, '00000000-0000-4000-8000-000000000005', 'worker-2/4411/9f3c', '2026-09-16', '30 s', now() - interval '134 s',
        now() - interval '4 s', now() + interval '1 h', 12, '10.2 s'),
       ('report:acme/<img src=x onerror=alert(1)>', 1795969942000007, 1, gen_random_uuid(), 'worker-1/77/01ab', null, '45 s',
        now() - interval '22 m', now() - interval '34 s', now() + interval '11 s', 88, '15.1 s'),
       ('gdpr:purge', 1795969941000012, 1, gen_random_uuid(), 'janitor/640/aa', null, '30 s', now() - interval '9 m', now() - interval '165 s',
        now() - interval '135 s', 20, '10 s'),
       ('ledger-close', 1795969942000041, 1, gen_random_uuid(), 'worker-4/12/beef', null, '24 h', now() - interval '3 h', now() - interval '3 s',
        now() + interval '23 h', 40, '2 s'),
       ('free', 3, 1, null, null, null, '30 s', null, null, null, 0, '0 s'),
       (repeat('x', 255), 9007199254740991, 1, gen_random_uuid(), repeat('h', 255), null, '24 h', now() - interval '400 d', now(),
        now() + interval '1 h', 0, '0 s');
insert into pawl.tenures (lock, token, grant_id, holder, key, acquired_at, ended_at, how, successor, beats, longest_gap)
values ('job:settle', 1795969904000001, '00000000-0000-4000-8000-000000000004', 'worker-1/4409/77d0', '2026-09-16', now() - interval '10 m',
        now() - interval '172 s', 'taken_over', 1795969942676573, 3, '10 s'),
       ('ledger-close', 1795969942000040, gen_random_uuid(), 'worker-3/9/c0de', null, now() - interval '4 h', now() - interval '3 h', 'forced',
        1795969942000041, 9, '10 s'),
       (repeat('x', 255), 9007199254740990, gen_random_uuid(), repeat('h', 255), null, now() - interval '401 d', now() - interval '400 d', 'forced',
        9007199254740991, 0, '0 s');
insert into pawl.refusals (at, lock, token, current, holder, late_by, target, statement)
select now() - n * interval '11 s', 'job:settle', 1795969904000001, 1795969942676573, 'worker-1/4409/77d0', n * interval '11 s', 'pawl_demo.settlement',
       'insert into pawl_demo.settlement (merchant, day, currency, net)
         values ($1, $2, $3, $4)'
  from generate_series(1, 7) n;
insert into pawl.refusals (lock, token, current, holder, late_by, target, statement)
values (repeat('x', 255), 9007199254740990, 9007199254740991, repeat('h', 255), '400 d', repeat('t', 255), repeat('s', 500));
insert into pawl.refusals (lock, token, current, holder, target, statement, passed, nth)
values ('job:settle', null, null, null, 'public.ledger', 'UPDATE', true, null);
insert into pawl.waiters (id, lock, holder, since, until)
values (gen_random_uuid(), 'ledger-close', 'worker-5/1/0001', now() - interval '9 s', now() + interval '1 h');
insert into pawl.schedules (job, app, definition, lock, watermark, paused_at, paused_by, pause_note, retired_at)
values ('settle', 'shop', '{"schedule": "0 2 * * *", "period": "day"}', 'job:settle', now(), null, null, null, null),
       ('invoices', 'shop', '{"schedule": "0 6 * * 1-5", "timezone": "Europe/Paris"}', 'job:invoices', now(), now() - interval '1 d', 'kim', 'tax rates change', null),
       ('old', 'shop', '{"schedule": "@every 15m"}', 'job:old', now(), null, null, null, now() - interval '3 d'),
       (repeat('j', 200), 'shop', '{"schedule": "*/5 * * * *"}', repeat('j', 200), now(), null, null, null, null);
insert into pawl.periods (job, key, lock, state, start_at, end_at, scheduled_at, attempts, run, token, started_at, ended_at, reason)
select 'settle', to_char(d, 'YYYY-MM-DD'), 'job:settle',
       (array['complete', 'complete', 'dead', 'complete', 'missed', 'skipped', 'cancelled'])[1 + extract(doy from d)::int % 7],
       d, d + interval '1 d', d + interval '26 h', 1, null, 1795969902000000 + extract(doy from d)::int, d + interval '26 h', d + interval '27 h',
       case when extract(doy from d)::int % 7 = 4 then 'catch-up is off' end
  from generate_series('2026-08-20Z'::timestamptz, '2026-09-15Z', '1 d') d;
insert into pawl.periods (job, key, lock, state, start_at, end_at, scheduled_at, attempts, run, token)
values ('settle', '2026-09-16', 'job:settle', 'running', '2026-09-16Z', '2026-09-17Z', now(), 2, '00000000-0000-4000-8000-000000000005', 1795969942676573),
       ('settle', '2026-09-17', 'job:settle', 'open', '2026-09-17Z', '2026-09-18Z', now(), 0, null, null),
       ('invoices', '2026-09-16', 'job:invoices', 'dead', '2026-09-16Z', '2026-09-17Z', now() - interval '1 d', 6, '00000000-0000-4000-8000-000000000006', 5),
       (repeat('j', 200), repeat('k', 200), repeat('j', 200), 'dead', now() - interval '1 h', now(), now(), 6, null, null);
insert into pawl.runs (id, job, key, revision, attempt, lock, token, holder, state, started_at, ended_at, done, total, error, resumed)
values ('00000000-0000-4000-8000-000000000005', 'settle', '2026-09-16', 1, 2, 'job:settle', 1795969942676573, 'worker-2/4411/9f3c',
        'running', now() - interval '134 s', null, 120400, 200000, null, true),
       ('00000000-0000-4000-8000-000000000004', 'settle', '2026-09-16', 1, 1, 'job:settle', 1795969904000001, 'worker-1/4409/77d0',
        'lost', now() - interval '10 m', now() - interval '170 s', 81200, 200000, 'lease expired', false),
       ('00000000-0000-4000-8000-000000000003', 'settle', '2026-09-15', 1, 1, 'job:settle', 1795969903000001, 'worker-3/4413/c001',
        'complete', now() - interval '25 h', now() - interval '25 h' + interval '73 s', 200000, 200000, null, false),
       ('00000000-0000-4000-8000-000000000006', 'invoices', '2026-09-16', 1, 6, 'job:invoices', 5, 'worker-3/4413/c001',
        'failed', now() - interval '27 h', now() - interval '27 h' + interval '3 s', null, null,
        E'panic: control totals differ: 1200 minor units\ngoroutine 7 [running]:\nmain.settle(0x1)\n\t/src/settle.go:12 <b>', false),
       (gen_random_uuid(), repeat('j', 200), repeat('k', 200), 1, 1, 'x', 9007199254740991, repeat('h', 255), 'timed_out', now() - interval '2 h',
        now(), 9223372036854775807, 9223372036854775807, repeat('e', 2000), false),
       (gen_random_uuid(), 'j', '01KB8W7X2V3Q4R5S6T7V8W9XYZ', 1, 1, 'y', 9007199254740991, 'h', 'failed', now() - interval '2 h', now(), null, null,
        repeat('long ', 30) || E'\n' || repeat('e', 2000), false);
insert into pawl.checkpoints (job, key, revision, token, operation, value)
values ('settle', '2026-09-16', 1, 1795969942676573, gen_random_uuid(), '{"merchant": "m-120400", "secret": "payload-of-the-shop"}');
insert into pawl.audit (at, actor, action, lock, token, job, period, reason, detail)
values (now() - interval '3 h', 'kim', 'force_release', 'ledger-close', 1795969942000040, null, null, 'the holder hangs in a syscall', null),
       (now() - interval '1 d', 'kim', 'pause', null, null, 'invoices', null, 'tax rates change', '{"until": null}');
insert into pawl.river_job (state, queue, kind, args, max_attempts, scheduled_at)
values ('available', 'pawl', 'pawl.settle', '{}', 1, now() - interval '20 s');
insert into pawl.periods (job, key, lock, state, start_at, end_at, scheduled_at, attempts, run, token, ended_at, origin, parent, shard, shard_no)
select 'settle', '2026-09-16#' || n, 'job:settle#' || n, (array['complete', 'dead', 'open'])[1 + n % 3], '2026-09-16Z', '2026-09-17Z', now(), 1, null, null,
       case when n % 3 < 2 then now() end, 'shard', '2026-09-16', n::text, n
  from generate_series(0, 119) n;
insert into pawl.effects (job, key, revision, effect, idempotency_key, state, request, error, run, token, operation, ended_at)
values ('invoices', '2026-09-16', 1, 'payout/' || repeat('m', 150), 'invoices:2026-09-16/payout/' || repeat('m', 150), 'uncertain', '{"cents": 4200}',
        repeat('e', 2000), gen_random_uuid(), 5, gen_random_uuid(), null),
       ('invoices', '2026-09-16', 1, 'mail', 'invoices:2026-09-16/mail', 'intended', '1', null, gen_random_uuid(), 5, gen_random_uuid(), null),
       ('settle', '2026-09-15', 1, 'mail', 'settle:2026-09-15/mail', 'done', '1', null, gen_random_uuid(), 1795969903000001, gen_random_uuid(), now()),
       ('settle', '2026-09-15', 1, 'post', 'settle:2026-09-15/post', 'dropped', '1', null, gen_random_uuid(), 1795969903000001, gen_random_uuid(), now());
insert into pawl.artifact_versions (name, version, lock, token, hash, size, file, holder, run, job, key, revision, operation, at, superseded_at, removed_at)
select name, n, 'job:settle', 1795969903000000 + n, repeat('0123456789abcdef', 4), 1288490189::bigint * n, name || n, repeat('h', 255), '00000000-0000-4000-8000-000000000003', 'settle',
       '2026-09-15', 1, gen_random_uuid(), now() - (4 - n) * interval '1 h', case when n < 3 then now() end, case when n < 2 then now() end
  from unnest(array['statements/acme.csv', 'statements/' || repeat('w', 160)]) name, generate_series(1, 3) n;
insert into pawl.artifacts (name, version, lock, token, hash, size, file, holder, at)
select name, version, lock, token, hash, size, file, holder, at from pawl.artifact_versions where version = 3;
update pawl.periods set reason = 'attempts' where state = 'dead' and reason is null;
insert into pawl.effect_differences (job, idempotency_key, kind, effect, detail, first_at)
values ('settle', 'settle:2026-09-15/mail', 'absent', 3, '{"to": "ann@example.com"}', now() - interval '3 h'),
       ('invoices', 'invoices:2026-09-16/payout/' || repeat('m', 150), 'stray', 1, 'for us it is uncertain: ' || repeat('d', 300), now() - interval '2 h'),
       ('invoices', 'invoices:x/strange', 'stray', null, '17.00', now() - interval '1 h'),
       ('settle', 'settle:2026-09-15/post', 'differs', 4, '41.00 here, 42.00 there', now() - interval '1 h');
insert into pawl.schedules (job, app, definition, lock, watermark)
values ('mail', 'shop', '{"schedule": "@manual", "overlap": "allow", "outbox": true, "runs": 21, "on_dead": "hold_next"}', 'job:mail', now());
insert into pawl.runs (id, job, key, revision, attempt, lock, token, holder, state, started_at, ended_at, error)
values ('00000000-0000-4000-8000-000000000008', 'mail', '01KB8W7X2V3Q4R5S6T7V8W9XYZ', 1, 21, 'job:mail#customer 42', 7, 'worker-1/4409/77d0', 'failed', now() - interval '2 h', now() - interval '2 h',
        'smtp: 452 4.2.2 mailbox full'),
       ('00000000-0000-4000-8000-000000000007', 'settle', '2026-09-17', 1, 1, 'job:settle', 1795969942676570, 'worker-4/12/beef', 'drained', now() - interval '3 s', now() - interval '3 s',
        'jobs: waits for a slot: lockrepo: all 2 slots of "report:acme" are held');
insert into pawl.outbox (job, period, key, seq, body, at)
values ('mail', '01KB8W7X2V3Q4R5S6T7V8W9XYZ', 'customer 42', 1, '{"template": "invoice", "to": "ann@example.com"}', now() - interval '3 h'),
       ('mail', '01KB8W7X2V3Q4R5S6T7V8W9XZ1', 'customer 42', 2, '{}', now() - interval '2 h'), ('mail', '01KB8W7X2V3Q4R5S6T7V8W9XZ2', 'customer 42', 3, '{}', now() - interval '1 h'),
       ('mail', '01KB8W7X2V3Q4R5S6T7V8W9XZ3', repeat('c', 120), 9007199254740991, '{}', now() - interval '4 h'), ('mail', '01KB8W7X2V3Q4R5S6T7V8W9XZ4', 'customer 7', 12, '{}', now() - interval '2 s');
insert into pawl.periods (job, key, lock, origin, state, reason, waits, start_at, end_at, scheduled_at, attempts, max_attempts, run, token, ended_at)
select job, period, 'job:mail#' || key, 'outbox', case when seq in (1, 9007199254740991) then 'dead' else 'open' end, case when seq in (1, 9007199254740991) then 'attempts' end,
       case when seq in (1, 9007199254740991) then 'decision' when seq < 12 then 'dead' end, at, at, at, case when seq = 1 then 21 when seq > 12 then 1 else 0 end, 21,
       case when seq = 1 then '00000000-0000-4000-8000-000000000008'::uuid end, case when seq = 1 then 7 end, case when seq in (1, 9007199254740991) then now() - interval '2 h' end
  from pawl.outbox;
insert into pawl.locks (name, token, incarnation, grant_id, holder, key, ttl, acquired_at, renewed_at, expires_at)
select 'report:acme#' || n, 5, 1, gen_random_uuid(), 'worker-' || n || '/77/01ab', null, '30 s', now(), now(), now() + interval '1 h' from generate_series(0, 1) n;

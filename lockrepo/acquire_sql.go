package lockrepo

// $1 name, $2 holder, $3 grant id, $4 ttl, $5 key, $6 reenter: also take a row
// whose holder and key are the caller's.
//
// One row always: granted, held (by whom; may be past its end while a guarded
// transaction drains), again, adopt or ended. It never waits: the row is
// skipped when it is locked, and a birth doesn't wait for another's, or it
// would grant to a caller that has gone. Peek (who is turned away writes
// nothing), lock, judge: the clock is read after the row is ours.
const acquireSQL = `
with k as materialized (
  select incarnation, floor from pawl.clock where incarnation = pawl.incarnation()
), cur as materialized (
  select * from pawl.locks where name = $1
), old as materialized (
  select from pawl.tenures where grant_id = $3::uuid
), locked as materialized (
  select l.* from cur c join pawl.locks l on l.name = c.name
   where (c.grant_id is null or c.grant_id = $3::uuid or c.expires_at <= clock_timestamp()
          or $6::bool and c.holder = $2 and c.key = $5::text)
     and exists (select from k) and not exists (select from old)
     for update of l skip locked
), free as materialized (
  select *, coalesce(grant_id = $3::uuid, false) as same, $6::bool and holder = $2 and key = $5::text as own from locked
   where grant_id is null
      or case when grant_id = $3::uuid then expires_at > clock_timestamp()
              else expires_at <= clock_timestamp() or $6::bool and holder = $2 and key = $5::text end
), taken as (
  update pawl.locks l
     set token = case when f.same then l.token
                      else pawl.next_token(f.token, f.incarnation = k.incarnation, k.floor) end,
         incarnation = case when f.same then l.incarnation else k.incarnation end,
         grant_id = $3::uuid, holder = $2, key = $5::text, ttl = $4::interval,
         acquired_at = case when f.same then l.acquired_at else clock_timestamp() end,
         renewed_at = clock_timestamp(), expires_at = clock_timestamp() + $4::interval,
         beats = case when f.same then l.beats else 0 end,
         longest_gap = case when f.same then greatest(l.longest_gap, clock_timestamp() - l.renewed_at) else '0' end
    from free f cross join k where l.name = f.name
  returning l.*
), born as (
  insert into pawl.locks as l (name, token, incarnation, grant_id, holder, key, ttl, acquired_at, renewed_at, expires_at)
  select $1, pawl.next_token(null, true, k.floor), k.incarnation, $3::uuid, $2, $5::text, $4::interval,
         clock_timestamp(), clock_timestamp(), clock_timestamp() + $4::interval
    from k where case when exists (select from cur) or exists (select from old) then false
                      else pg_try_advisory_xact_lock(hashtext('pawl.locks'), hashtext($1)) end
  on conflict (name) do nothing returning l.*
), ended as (
  insert into pawl.tenures (lock, token, grant_id, holder, key, acquired_at, ended_at, how, successor, beats, longest_gap)
  select f.name, f.token, f.grant_id, f.holder, f.key, f.acquired_at, least(f.expires_at, clock_timestamp()),
         case when f.own then 'reacquired' else 'taken_over' end, t.token, f.beats, f.longest_gap
    from free f join taken t on t.name = f.name where f.grant_id <> $3::uuid
), heir as (
  update pawl.tenures e set how = case e.how when 'expired' then 'taken_over' else e.how end, successor = t.token
    from free f join taken t on t.name = f.name
   where f.grant_id is null and e.lock = f.name and e.token = f.token and e.how in ('expired', 'forced')
)
select case when g.name is not null then 'granted'
            when not exists (select from k) then 'adopt'
            when exists (select from old) or c.grant_id = $3::uuid and c.expires_at <= clock_timestamp() then 'ended'
            when c.grant_id <> $3::uuid then 'held' else 'again' end,
       coalesce(g.token, c.token, 0), coalesce(g.holder, c.holder, ''), coalesce(g.acquired_at, c.acquired_at),
       coalesce(g.expires_at, c.expires_at)
  from (select) one left join (select * from taken union all select * from born) g on true left join cur c on true`

-- The three database roles. They can't log in: grant them to your own users.
--   pawl_owner   owns the schema and migrates it
--   pawl_worker  runs jobs, holds locks, serves the page
--   pawl_fencer  only honours tokens: guard, fence, check; reads and writes no table of pawl's
-- Run it after the migrations, as a superuser or as the user who migrated, owns the database and may create roles: it
-- becomes a member of pawl_owner, to migrate again. It may be run again.

do $$
declare r text;
begin
  foreach r in array array['pawl_owner', 'pawl_worker', 'pawl_fencer'] loop
    begin
      execute format('create role %I nologin', r);
    exception when duplicate_object or unique_violation then null;
    end;
  end loop;
  execute format('grant create on database %I to pawl_owner', current_database());
  -- Only a superuser may give something to a role that it isn't in.
  if not (select rolsuper from pg_roles where rolname = current_user) then
    execute format('grant pawl_owner to %I', current_user);
  end if;
end $$;

-- The owner. Triggers and indexes follow their tables, identity sequences too.
do $$
declare o record;
begin
  alter schema pawl owner to pawl_owner;
  for o in select c.oid::regclass as name from pg_class c
            where c.relnamespace = 'pawl'::regnamespace and c.relkind in ('r', 'p') loop
    execute format('alter table %s owner to pawl_owner', o.name);
  end loop;
  for o in select p.oid::regprocedure as name from pg_proc p where p.pronamespace = 'pawl'::regnamespace loop
    execute format('alter routine %s owner to pawl_owner', o.name);
  end loop;
  for o in select t.oid::regtype as name from pg_type t where t.typnamespace = 'pawl'::regnamespace and t.typtype = 'e' loop
    execute format('alter type %s owner to pawl_owner', o.name);
  end loop;
end $$;

revoke all on schema pawl from public;
revoke all on all tables in schema pawl from public;
revoke execute on all functions in schema pawl from public;
alter default privileges for role pawl_owner revoke execute on functions from public;
grant usage on schema pawl to pawl_worker, pawl_fencer;

-- The worker, also for what later migrations add. What people did is never changed, and migrations are the owner's.
grant select, insert, update, delete on all tables in schema pawl to pawl_worker;
grant usage, select on all sequences in schema pawl to pawl_worker;
grant execute on all functions in schema pawl to pawl_worker;
revoke update, delete on pawl.audit from pawl_worker;
revoke delete on pawl.keys from pawl_worker;   -- without any key, the lock API asks for none
revoke insert, update, delete on pawl.approvals, pawl.settings from pawl_worker;   -- only through the functions, which check
revoke insert, update, delete on pawl.schema_info, pawl.goose_db_version, pawl.river_migration from pawl_worker;
alter default privileges for role pawl_owner in schema pawl grant select, insert, update, delete on tables to pawl_worker;
alter default privileges for role pawl_owner in schema pawl grant usage, select on sequences to pawl_worker;
alter default privileges for role pawl_owner in schema pawl grant execute on functions to pawl_worker;

-- The fencer. The functions run with the owner's rights: taking a row FOR KEY SHARE would need UPDATE on locks.
grant execute on function
  pawl.guard(text, bigint), pawl.guard_one(text, bigint), pawl.guard_again(text, bigint), pawl.fence(text, bigint, text[]),
  pawl.once(text, bigint, text), pawl.check(text, bigint, text), pawl.refuse(text, bigint, text, text)
  to pawl_fencer;

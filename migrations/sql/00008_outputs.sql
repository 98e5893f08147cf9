-- What runs have said. Apart from the runs, so that no list of runs carries it.

-- +goose Up
create table pawl.outputs (
    run     uuid primary key,
    job     text collate "C" not null,              -- of the run: how long it is kept is the job's
    head    bytea not null,
    tail    bytea not null,
    bytes   bigint not null,                        -- in all, with what is missing between head and tail
    at      timestamptz not null default clock_timestamp(),
    partial boolean not null default false          -- as far as it was when its run went on; of a run that is over: the rest is lost
);
create index outputs_job on pawl.outputs (job, at);   -- for who prunes it

-- +goose Down
drop table pawl.outputs;

-- Files that runs publish. The bytes are in a store, under names that are never used twice; which of them is the artifact is
-- said here, by a row that moves under a token. Whose an artifact is says its mark: pawl.fences has the target artifact:NAME.

-- +goose Up

-- The pointers: what a reader asks for.
create table pawl.artifacts (
    name    text collate "C" primary key,
    version bigint not null,                        -- 1, 2, …
    lock    text collate "C" not null,
    token   bigint not null,                        -- that moved it here
    hash    text collate "C" not null,              -- SHA-256 of the bytes, in hex
    size    bigint not null,
    file    text collate "C" not null,              -- in the store: NAME.token.hash
    holder  text collate "C" not null,
    at      timestamptz not null
);

-- All that a pointer has ever named, with the one that it names.
create table pawl.artifact_versions (
    name          text collate "C" not null,
    version       bigint not null,
    lock          text collate "C" not null,
    token         bigint not null,
    hash          text collate "C" not null,
    size          bigint not null,
    file          text collate "C" not null,        -- two versions of one run with the same bytes have the same one
    holder        text collate "C" not null,
    run           uuid not null,
    job           text collate "C" not null,
    key           text collate "C" not null,
    revision      int not null,
    operation     uuid not null,                    -- of the transaction: who lost its reply asks for it
    at            timestamptz not null,
    superseded_at timestamptz,                      -- null: the pointer names it
    removed_at    timestamptz,                      -- its bytes are gone
    primary key (name, version)
);
create index artifact_versions_file on pawl.artifact_versions (file);
create index artifact_versions_job on pawl.artifact_versions (job, key, revision);
create index artifact_versions_current on pawl.artifact_versions (job, name) where superseded_at is null;
create index artifact_versions_due on pawl.artifact_versions (superseded_at) where superseded_at is not null and removed_at is null;
create index artifact_versions_removed on pawl.artifact_versions (removed_at) where removed_at is not null;

-- +goose Down
drop table pawl.artifact_versions, pawl.artifacts;

-- The tables of the catalog, the head of each, and every version with its commit.
CREATE TABLE dl_tables (
    table_id            uuid        NOT NULL PRIMARY KEY,
    name                text        NOT NULL UNIQUE,
    location            text        NOT NULL,
    authority           text        NOT NULL CHECK (authority IN ('log', 'catalog')),
    created_at          timestamptz NOT NULL,
    protocol_min_reader integer     NOT NULL,
    protocol_min_writer integer     NOT NULL,
    properties          text        NOT NULL DEFAULT '{}'
);

CREATE TABLE dl_table_heads (
    table_id             uuid   NOT NULL PRIMARY KEY REFERENCES dl_tables,
    current_version      bigint NOT NULL CHECK (current_version >= 0),
    published_version    bigint NOT NULL CHECK (published_version >= -1),
    min_readable_version bigint NOT NULL CHECK (min_readable_version >= 0),
    -- A version that an outside engine wrote into the log before the catalog could: no commit until it is resolved.
    foreign_version      bigint
);

-- kind: the rows of a "commit" are its own actions; those of a "checkpoint" are the state that a checkpoint gave where the
-- commits before it are gone (the whole state at the start, the difference when a follower had to bridge a clean-up).
CREATE TABLE dl_table_versions (
    table_id         uuid        NOT NULL REFERENCES dl_tables,
    version          bigint      NOT NULL CHECK (version >= 0),
    committed_at     timestamptz NOT NULL,
    kind             text        NOT NULL CHECK (kind IN ('commit', 'checkpoint')),
    committer        text,
    operation        text,
    operation_params text,
    commit_info      text,
    txn_id           text,
    group_id         uuid,
    content_sha256   text,
    PRIMARY KEY (table_id, version),
    UNIQUE (table_id, txn_id)
);
-- A timestamp is resolved to a version by this index alone.
CREATE INDEX dl_table_versions_by_time ON dl_table_versions (table_id, committed_at, version);
CREATE INDEX dl_table_versions_by_group ON dl_table_versions (group_id) WHERE group_id IS NOT NULL;

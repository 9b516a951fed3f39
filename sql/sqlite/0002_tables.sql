-- The tables of the catalog, the head of each, and every version with its commit.
CREATE TABLE dl_tables (
    table_id            TEXT        NOT NULL PRIMARY KEY,
    name                TEXT        NOT NULL UNIQUE,
    location            TEXT        NOT NULL,
    authority           TEXT        NOT NULL CHECK (authority IN ('log', 'catalog')),
    created_at          TEXT        NOT NULL,
    protocol_min_reader INTEGER     NOT NULL,
    protocol_min_writer INTEGER     NOT NULL,
    properties          TEXT        NOT NULL DEFAULT '{}'
);

CREATE TABLE dl_table_heads (
    table_id             TEXT   NOT NULL PRIMARY KEY REFERENCES dl_tables (table_id),
    current_version      BIGINT NOT NULL CHECK (current_version >= 0),
    published_version    BIGINT NOT NULL CHECK (published_version >= -1),
    min_readable_version BIGINT NOT NULL CHECK (min_readable_version >= 0),
    -- A version that an outside engine wrote into the log before the catalog could: no commit until it is resolved.
    foreign_version      BIGINT
);

-- kind: the rows of a "commit" are its own actions; those of a "checkpoint" are the state that a checkpoint gave where the
-- commits before it are gone (the whole state at the start, the difference when a follower had to bridge a clean-up).
CREATE TABLE dl_table_versions (
    table_id         TEXT        NOT NULL REFERENCES dl_tables (table_id),
    version          BIGINT      NOT NULL CHECK (version >= 0),
    committed_at     TEXT        NOT NULL,
    kind             TEXT        NOT NULL CHECK (kind IN ('commit', 'checkpoint')),
    committer        TEXT,
    operation        TEXT,
    operation_params TEXT,
    commit_info      TEXT,
    txn_id           TEXT,
    group_id         TEXT,
    content_sha256   TEXT,
    PRIMARY KEY (table_id, version),
    UNIQUE (table_id, txn_id)
);
-- A timestamp is resolved to a version by this index alone.
CREATE INDEX dl_table_versions_by_time ON dl_table_versions (table_id, committed_at, version);
CREATE INDEX dl_table_versions_by_group ON dl_table_versions (group_id) WHERE group_id IS NOT NULL;

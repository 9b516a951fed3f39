-- The tables of the catalog, the head of each, and every version with its commit.
CREATE TABLE dl_tables (
    table_id            VARCHAR     NOT NULL PRIMARY KEY,
    name                VARCHAR     NOT NULL UNIQUE,
    location            VARCHAR     NOT NULL,
    authority           VARCHAR     NOT NULL CHECK (authority IN ('log', 'catalog')),
    created_at          TIMESTAMP   NOT NULL,
    protocol_min_reader INTEGER     NOT NULL,
    protocol_min_writer INTEGER     NOT NULL,
    properties          VARCHAR     NOT NULL DEFAULT '{}'
);

CREATE TABLE dl_table_heads (
    table_id             VARCHAR NOT NULL PRIMARY KEY REFERENCES dl_tables (table_id),
    current_version      BIGINT NOT NULL CHECK (current_version >= 0),
    published_version    BIGINT NOT NULL CHECK (published_version >= -1),
    min_readable_version BIGINT NOT NULL CHECK (min_readable_version >= 0),
    -- A version that an outside engine wrote into the log before the catalog could: no commit until it is resolved.
    foreign_version      BIGINT
);

-- kind: the rows of a "commit" are its own actions; those of a "checkpoint" are the state that a checkpoint gave where the
-- commits before it are gone (the whole state at the start, the difference when a follower had to bridge a clean-up).
CREATE TABLE dl_table_versions (
    table_id         VARCHAR     NOT NULL REFERENCES dl_tables (table_id),
    version          BIGINT      NOT NULL CHECK (version >= 0),
    committed_at     TIMESTAMP   NOT NULL,
    kind             VARCHAR     NOT NULL CHECK (kind IN ('commit', 'checkpoint')),
    committer        VARCHAR,
    operation        VARCHAR,
    operation_params VARCHAR,
    commit_info      VARCHAR,
    txn_id           VARCHAR,
    group_id         VARCHAR,
    content_sha256   VARCHAR,
    PRIMARY KEY (table_id, version),
    UNIQUE (table_id, txn_id)
);

-- Delta's actions, a table each, verbatim: text that must come back as it was is text, never jsonb.
--
-- A file is (path, deletion vector): file_key is a 128-bit hash of both, path_bucket (0..255) a hash of the path alone,
-- both computed by the writer. No key holds a path: a long one does not fit a B-tree.
-- removed_version makes an add row a span: live at V <=> version <= V AND (removed_version IS NULL OR removed_version > V).
-- superseded_version does the same for application transactions and domains, so that opening a table costs what is
-- live and not what ever was. Fixed-width columns stand first: it saves the padding between them.
CREATE TABLE dl_add_files (
    table_id                   TEXT     NOT NULL REFERENCES dl_tables (table_id),
    version                    BIGINT   NOT NULL,
    removed_version            BIGINT   CHECK (removed_version >= version),
    size_bytes                 BIGINT   NOT NULL CHECK (size_bytes >= 0),
    modification_time          BIGINT   NOT NULL,
    num_records                BIGINT,
    base_row_id                BIGINT,
    default_row_commit_version BIGINT,
    seq                        INTEGER  NOT NULL,
    path_bucket                SMALLINT NOT NULL CHECK (path_bucket BETWEEN 0 AND 255),
    data_change                BOOLEAN  NOT NULL,
    file_key                   BLOB     NOT NULL,
    path                       TEXT     NOT NULL,
    dv_id                      TEXT,
    partition_values           TEXT     NOT NULL,
    stats                      TEXT,
    tags                       TEXT,
    deletion_vector            TEXT,
    clustering_provider        TEXT,
    extra                      TEXT,
    PRIMARY KEY (table_id, version, seq)
);
CREATE INDEX dl_add_files_live ON dl_add_files (table_id) WHERE removed_version IS NULL;
CREATE INDEX dl_add_files_spans ON dl_add_files (table_id, version, removed_version);
-- Not partial on purpose: a partial index keyed on a hash is taken for full reads of the live files, 5 times slower.
CREATE INDEX dl_add_files_by_file ON dl_add_files (table_id, file_key);

CREATE TABLE dl_remove_files (
    table_id                   TEXT     NOT NULL REFERENCES dl_tables (table_id),
    version                    BIGINT   NOT NULL,
    size_bytes                 BIGINT,
    deletion_timestamp         BIGINT,
    base_row_id                BIGINT,
    default_row_commit_version BIGINT,
    seq                        INTEGER  NOT NULL,
    path_bucket                SMALLINT NOT NULL CHECK (path_bucket BETWEEN 0 AND 255),
    data_change                BOOLEAN  NOT NULL,
    extended_file_metadata     BOOLEAN,
    file_key                   BLOB     NOT NULL,
    path                       TEXT     NOT NULL,
    dv_id                      TEXT,
    partition_values           TEXT,
    stats                      TEXT,
    tags                       TEXT,
    deletion_vector            TEXT,
    extra                      TEXT,
    PRIMARY KEY (table_id, version, seq)
);
CREATE INDEX dl_remove_files_by_file ON dl_remove_files (table_id, file_key);

CREATE TABLE dl_metadata_updates (
    table_id          TEXT    NOT NULL REFERENCES dl_tables (table_id),
    version           BIGINT  NOT NULL,
    seq               INTEGER NOT NULL,
    metadata_id       TEXT    NOT NULL,
    name              TEXT,
    description       TEXT,
    format            TEXT,
    schema_json       TEXT,
    partition_columns TEXT,
    table_properties  TEXT,
    created_time      BIGINT,
    extra             TEXT,
    PRIMARY KEY (table_id, version)
);

CREATE TABLE dl_protocol_updates (
    table_id           TEXT    NOT NULL REFERENCES dl_tables (table_id),
    version            BIGINT  NOT NULL,
    seq                INTEGER NOT NULL,
    min_reader_version INTEGER NOT NULL,
    min_writer_version INTEGER NOT NULL,
    reader_features    TEXT,
    writer_features    TEXT,
    extra              TEXT,
    PRIMARY KEY (table_id, version)
);

CREATE TABLE dl_txn_actions (
    table_id           TEXT    NOT NULL REFERENCES dl_tables (table_id),
    version            BIGINT  NOT NULL,
    seq                INTEGER NOT NULL,
    superseded_version BIGINT,
    txn_version        BIGINT  NOT NULL,
    last_updated       BIGINT,
    app_key            BLOB    NOT NULL,
    app_id             TEXT    NOT NULL,
    extra              TEXT,
    PRIMARY KEY (table_id, version, seq)
);
CREATE INDEX dl_txn_actions_by_app ON dl_txn_actions (table_id, app_key, version);
CREATE INDEX dl_txn_actions_live ON dl_txn_actions (table_id) WHERE superseded_version IS NULL;

CREATE TABLE dl_domain_metadata (
    table_id           TEXT    NOT NULL REFERENCES dl_tables (table_id),
    version            BIGINT  NOT NULL,
    seq                INTEGER NOT NULL,
    superseded_version BIGINT,
    removed            BOOLEAN NOT NULL,
    domain_key         BLOB    NOT NULL,
    domain             TEXT    NOT NULL,
    configuration      TEXT    NOT NULL,
    extra              TEXT,
    PRIMARY KEY (table_id, version, seq)
);
CREATE INDEX dl_domain_metadata_by_domain ON dl_domain_metadata (table_id, domain_key, version);
CREATE INDEX dl_domain_metadata_live ON dl_domain_metadata (table_id) WHERE superseded_version IS NULL;

CREATE TABLE dl_cdc_files (
    table_id         TEXT    NOT NULL REFERENCES dl_tables (table_id),
    version          BIGINT  NOT NULL,
    size_bytes       BIGINT  NOT NULL CHECK (size_bytes >= 0),
    seq              INTEGER NOT NULL,
    data_change      BOOLEAN NOT NULL,
    path             TEXT    NOT NULL,
    partition_values TEXT    NOT NULL,
    tags             TEXT,
    extra            TEXT,
    PRIMARY KEY (table_id, version, seq)
);

CREATE TABLE dl_other_actions (
    table_id TEXT    NOT NULL REFERENCES dl_tables (table_id),
    version  BIGINT  NOT NULL,
    seq      INTEGER NOT NULL,
    name     TEXT    NOT NULL,
    body     TEXT    NOT NULL,
    PRIMARY KEY (table_id, version, seq)
);

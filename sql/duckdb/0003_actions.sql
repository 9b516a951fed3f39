-- Delta's actions, a table each, verbatim: text that must come back as it was is text, never jsonb.
-- No secondary indexes here: zone maps skip what a predicate excludes, and an ART index would slow every bulk insert.
--
-- A file is (path, deletion vector): file_key is a 128-bit hash of both, path_bucket (0..255) a hash of the path alone,
-- both computed by the writer. No key holds a path: a long one does not fit a B-tree.
-- removed_version makes an add row a span: live at V <=> version <= V AND (removed_version IS NULL OR removed_version > V).
-- superseded_version does the same for application transactions and domains, so that opening a table costs what is
-- live and not what ever was. Fixed-width columns stand first: it saves the padding between them.
CREATE TABLE dl_add_files (
    table_id                   VARCHAR  NOT NULL REFERENCES dl_tables (table_id),
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
    path                       VARCHAR  NOT NULL,
    dv_id                      VARCHAR,
    partition_values           VARCHAR  NOT NULL,
    stats                      VARCHAR,
    tags                       VARCHAR,
    deletion_vector            VARCHAR,
    clustering_provider        VARCHAR,
    extra                      VARCHAR,
    PRIMARY KEY (table_id, version, seq)
);

CREATE TABLE dl_remove_files (
    table_id                   VARCHAR  NOT NULL REFERENCES dl_tables (table_id),
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
    path                       VARCHAR  NOT NULL,
    dv_id                      VARCHAR,
    partition_values           VARCHAR,
    stats                      VARCHAR,
    tags                       VARCHAR,
    deletion_vector            VARCHAR,
    extra                      VARCHAR,
    PRIMARY KEY (table_id, version, seq)
);

CREATE TABLE dl_metadata_updates (
    table_id          VARCHAR NOT NULL REFERENCES dl_tables (table_id),
    version           BIGINT  NOT NULL,
    seq               INTEGER NOT NULL,
    metadata_id       VARCHAR NOT NULL,
    name              VARCHAR,
    description       VARCHAR,
    format            VARCHAR,
    schema_json       VARCHAR,
    partition_columns VARCHAR,
    table_properties  VARCHAR,
    created_time      BIGINT,
    extra             VARCHAR,
    PRIMARY KEY (table_id, version)
);

CREATE TABLE dl_protocol_updates (
    table_id           VARCHAR NOT NULL REFERENCES dl_tables (table_id),
    version            BIGINT  NOT NULL,
    seq                INTEGER NOT NULL,
    min_reader_version INTEGER NOT NULL,
    min_writer_version INTEGER NOT NULL,
    reader_features    VARCHAR,
    writer_features    VARCHAR,
    extra              VARCHAR,
    PRIMARY KEY (table_id, version)
);

CREATE TABLE dl_txn_actions (
    table_id           VARCHAR NOT NULL REFERENCES dl_tables (table_id),
    version            BIGINT  NOT NULL,
    seq                INTEGER NOT NULL,
    superseded_version BIGINT,
    txn_version        BIGINT  NOT NULL,
    last_updated       BIGINT,
    app_key            BLOB    NOT NULL,
    app_id             VARCHAR NOT NULL,
    extra              VARCHAR,
    PRIMARY KEY (table_id, version, seq)
);

CREATE TABLE dl_domain_metadata (
    table_id           VARCHAR NOT NULL REFERENCES dl_tables (table_id),
    version            BIGINT  NOT NULL,
    seq                INTEGER NOT NULL,
    superseded_version BIGINT,
    removed            BOOLEAN NOT NULL,
    domain_key         BLOB    NOT NULL,
    domain             VARCHAR NOT NULL,
    configuration      VARCHAR NOT NULL,
    extra              VARCHAR,
    PRIMARY KEY (table_id, version, seq)
);

CREATE TABLE dl_cdc_files (
    table_id         VARCHAR NOT NULL REFERENCES dl_tables (table_id),
    version          BIGINT  NOT NULL,
    size_bytes       BIGINT  NOT NULL CHECK (size_bytes >= 0),
    seq              INTEGER NOT NULL,
    data_change      BOOLEAN NOT NULL,
    path             VARCHAR NOT NULL,
    partition_values VARCHAR NOT NULL,
    tags             VARCHAR,
    extra            VARCHAR,
    PRIMARY KEY (table_id, version, seq)
);

CREATE TABLE dl_other_actions (
    table_id VARCHAR NOT NULL REFERENCES dl_tables (table_id),
    version  BIGINT  NOT NULL,
    seq      INTEGER NOT NULL,
    name     VARCHAR NOT NULL,
    body     VARCHAR NOT NULL,
    PRIMARY KEY (table_id, version, seq)
);

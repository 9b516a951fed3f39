-- Delta's actions, a table each, verbatim: text that must come back as it was is text, never jsonb.
--
-- A file is (path, deletion vector): file_key is a 128-bit hash of both, path_bucket (0..255) a hash of the path alone,
-- both computed by the writer. No key holds a path: a long one does not fit a B-tree.
-- removed_version makes an add row a span: live at V <=> version <= V AND (removed_version IS NULL OR removed_version > V).
-- superseded_version does the same for application transactions and domains, so that opening a table costs what is
-- live and not what ever was. Fixed-width columns stand first: it saves the padding between them.
--
-- Not partitioned by LIST of path_bucket. Measured on Postgres 18, 2 cores, 5M add rows of 720 bytes (3M live), 16
-- partitions of 16 buckets against one table, medians of 3 interleaved rounds, all columns by COPY:
--   one slice of 16:  0.49 s against 1.45 s (2.9 times)     one slice of 2:  3.36 s against 5.02 s (1.5 times)
--   opening a table of 100 files:  1.09 ms against 0.42 ms pooled, 12.9 ms against 8.0 ms on a new connection
-- Slices gain, but every open of every small table would cost 1.6 to 2.6 times as much, and the limit was 1.1.
CREATE TABLE dl_add_files (
    table_id                   uuid     NOT NULL REFERENCES dl_tables,
    version                    bigint   NOT NULL,
    removed_version            bigint   CHECK (removed_version >= version),
    size_bytes                 bigint   NOT NULL CHECK (size_bytes >= 0),
    modification_time          bigint   NOT NULL,
    num_records                bigint,
    base_row_id                bigint,
    default_row_commit_version bigint,
    seq                        integer  NOT NULL,
    path_bucket                smallint NOT NULL CHECK (path_bucket BETWEEN 0 AND 255),
    data_change                boolean  NOT NULL,
    file_key                   bytea    NOT NULL,
    path                       text     NOT NULL,
    dv_id                      text,
    partition_values           text     NOT NULL,
    stats                      text,
    tags                       text,
    deletion_vector            text,
    clustering_provider        text,
    extra                      text,
    PRIMARY KEY (table_id, version, seq)
);
CREATE INDEX dl_add_files_live ON dl_add_files (table_id) WHERE removed_version IS NULL;
CREATE INDEX dl_add_files_spans ON dl_add_files (table_id, version, removed_version);
-- Not partial on purpose: a partial index keyed on a hash is taken for full reads of the live files, 5 times slower.
CREATE INDEX dl_add_files_by_file ON dl_add_files (table_id, file_key);

CREATE TABLE dl_remove_files (
    table_id                   uuid     NOT NULL REFERENCES dl_tables,
    version                    bigint   NOT NULL,
    size_bytes                 bigint,
    deletion_timestamp         bigint,
    base_row_id                bigint,
    default_row_commit_version bigint,
    seq                        integer  NOT NULL,
    path_bucket                smallint NOT NULL CHECK (path_bucket BETWEEN 0 AND 255),
    data_change                boolean  NOT NULL,
    extended_file_metadata     boolean,
    file_key                   bytea    NOT NULL,
    path                       text     NOT NULL,
    dv_id                      text,
    partition_values           text,
    stats                      text,
    tags                       text,
    deletion_vector            text,
    extra                      text,
    PRIMARY KEY (table_id, version, seq)
);
CREATE INDEX dl_remove_files_by_file ON dl_remove_files (table_id, file_key);

CREATE TABLE dl_metadata_updates (
    table_id          uuid    NOT NULL REFERENCES dl_tables,
    version           bigint  NOT NULL,
    seq               integer NOT NULL,
    metadata_id       text    NOT NULL,
    name              text,
    description       text,
    format            text,
    schema_json       text,
    partition_columns text,
    table_properties  text,
    created_time      bigint,
    extra             text,
    PRIMARY KEY (table_id, version)
);

CREATE TABLE dl_protocol_updates (
    table_id           uuid    NOT NULL REFERENCES dl_tables,
    version            bigint  NOT NULL,
    seq                integer NOT NULL,
    min_reader_version integer NOT NULL,
    min_writer_version integer NOT NULL,
    reader_features    text,
    writer_features    text,
    extra              text,
    PRIMARY KEY (table_id, version)
);

CREATE TABLE dl_txn_actions (
    table_id           uuid    NOT NULL REFERENCES dl_tables,
    version            bigint  NOT NULL,
    seq                integer NOT NULL,
    superseded_version bigint,
    txn_version        bigint  NOT NULL,
    last_updated       bigint,
    app_key            bytea   NOT NULL,
    app_id             text    NOT NULL,
    extra              text,
    PRIMARY KEY (table_id, version, seq)
);
CREATE INDEX dl_txn_actions_by_app ON dl_txn_actions (table_id, app_key, version);
CREATE INDEX dl_txn_actions_live ON dl_txn_actions (table_id) WHERE superseded_version IS NULL;

CREATE TABLE dl_domain_metadata (
    table_id           uuid    NOT NULL REFERENCES dl_tables,
    version            bigint  NOT NULL,
    seq                integer NOT NULL,
    superseded_version bigint,
    removed            boolean NOT NULL,
    domain_key         bytea   NOT NULL,
    domain             text    NOT NULL,
    configuration      text    NOT NULL,
    extra              text,
    PRIMARY KEY (table_id, version, seq)
);
CREATE INDEX dl_domain_metadata_by_domain ON dl_domain_metadata (table_id, domain_key, version);
CREATE INDEX dl_domain_metadata_live ON dl_domain_metadata (table_id) WHERE superseded_version IS NULL;

CREATE TABLE dl_cdc_files (
    table_id         uuid    NOT NULL REFERENCES dl_tables,
    version          bigint  NOT NULL,
    size_bytes       bigint  NOT NULL CHECK (size_bytes >= 0),
    seq              integer NOT NULL,
    data_change      boolean NOT NULL,
    path             text    NOT NULL,
    partition_values text    NOT NULL,
    tags             text,
    extra            text,
    PRIMARY KEY (table_id, version, seq)
);

CREATE TABLE dl_other_actions (
    table_id uuid    NOT NULL REFERENCES dl_tables,
    version  bigint  NOT NULL,
    seq      integer NOT NULL,
    name     text    NOT NULL,
    body     text    NOT NULL,
    PRIMARY KEY (table_id, version, seq)
);

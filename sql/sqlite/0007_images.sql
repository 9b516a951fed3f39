-- The live files of one version as columns in Arrow's own format, so that opening a table need not gather them row by row.
--
-- Derived, never the definition: a reader takes the newest image at or before its version and not below the table's
-- floor, and moves it on by the rows of the versions since. Who deletes a table's versions deletes its images first.
CREATE TABLE dl_snapshot_images (
    table_id TEXT    NOT NULL REFERENCES dl_tables (table_id),
    version  BIGINT  NOT NULL,
    chunk    INTEGER NOT NULL,
    files    BIGINT  NOT NULL,
    content  BLOB    NOT NULL,
    PRIMARY KEY (table_id, version, chunk)
);

-- The live files of one version as columns in Arrow's own format, so that opening a table need not gather them row by row.
--
-- Derived, never the definition: a reader takes the newest image at or before its version and not below the table's
-- floor, and moves it on by the rows of the versions since. Who deletes a table's versions deletes its images first.
CREATE TABLE dl_snapshot_images (
    table_id uuid    NOT NULL REFERENCES dl_tables,
    version  bigint  NOT NULL,
    chunk    integer NOT NULL,
    files    bigint  NOT NULL,
    content  bytea   NOT NULL,
    PRIMARY KEY (table_id, version, chunk)
);
-- The content is compressed already.
ALTER TABLE dl_snapshot_images ALTER COLUMN content SET STORAGE EXTERNAL;

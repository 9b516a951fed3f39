-- What is published, who still reads, which versions have a name together, and what was checked.
CREATE TABLE dl_mirror_status (
    table_id     TEXT        NOT NULL REFERENCES dl_tables (table_id),
    version      BIGINT      NOT NULL,
    status       TEXT        NOT NULL CHECK (status IN ('PENDING', 'IN_FLIGHT', 'COMPLETE', 'FAILED')),
    attempts     INTEGER     NOT NULL DEFAULT 0,
    last_error   TEXT,
    created_at   TEXT        NOT NULL,
    updated_at   TEXT        NOT NULL,
    PRIMARY KEY (table_id, version)
);
-- The reconciler asks only for what is left to do.
CREATE INDEX dl_mirror_status_open ON dl_mirror_status (table_id, version) WHERE status <> 'COMPLETE';

CREATE TABLE dl_leases (
    lease_id   TEXT        NOT NULL PRIMARY KEY,
    table_id   TEXT        NOT NULL REFERENCES dl_tables (table_id),
    version    BIGINT      NOT NULL,
    purpose    TEXT        NOT NULL CHECK (purpose IN ('read', 'stage')),
    holder     TEXT        NOT NULL,
    detail     TEXT,
    created_at TEXT        NOT NULL,
    expires_at TEXT        NOT NULL
);
CREATE INDEX dl_leases_by_table ON dl_leases (table_id, expires_at);

CREATE TABLE dl_tags (
    name       TEXT        NOT NULL PRIMARY KEY,
    created_at TEXT        NOT NULL,
    created_by TEXT,
    remark     TEXT
);

CREATE TABLE dl_tag_members (
    tag      TEXT   NOT NULL REFERENCES dl_tags (name),
    table_id TEXT   NOT NULL REFERENCES dl_tables (table_id),
    version  BIGINT NOT NULL,
    PRIMARY KEY (tag, table_id)
);

CREATE TABLE dl_validation_runs (
    run_id      TEXT        NOT NULL PRIMARY KEY,
    table_id    TEXT        NOT NULL REFERENCES dl_tables (table_id),
    version     BIGINT      NOT NULL,
    group_id    TEXT,
    suite       TEXT        NOT NULL,
    started_at  TEXT        NOT NULL,
    finished_at TEXT        NOT NULL,
    success     BOOLEAN     NOT NULL,
    findings    TEXT        NOT NULL
);
CREATE INDEX dl_validation_runs_by_table ON dl_validation_runs (table_id, started_at);

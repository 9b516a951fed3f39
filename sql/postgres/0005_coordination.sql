-- What is published, who still reads, which versions have a name together, and what was checked.
CREATE TABLE dl_mirror_status (
    table_id     uuid        NOT NULL REFERENCES dl_tables,
    version      bigint      NOT NULL,
    status       text        NOT NULL CHECK (status IN ('PENDING', 'IN_FLIGHT', 'COMPLETE', 'FAILED')),
    attempts     integer     NOT NULL DEFAULT 0,
    last_error   text,
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    PRIMARY KEY (table_id, version)
);
-- The reconciler asks only for what is left to do.
CREATE INDEX dl_mirror_status_open ON dl_mirror_status (table_id, version) WHERE status <> 'COMPLETE';

CREATE TABLE dl_leases (
    lease_id   uuid        NOT NULL PRIMARY KEY,
    table_id   uuid        NOT NULL REFERENCES dl_tables,
    version    bigint      NOT NULL,
    purpose    text        NOT NULL CHECK (purpose IN ('read', 'stage')),
    holder     text        NOT NULL,
    detail     text,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX dl_leases_by_table ON dl_leases (table_id, expires_at);

CREATE TABLE dl_tags (
    name       text        NOT NULL PRIMARY KEY,
    created_at timestamptz NOT NULL,
    created_by text,
    remark     text
);

CREATE TABLE dl_tag_members (
    tag      text   NOT NULL REFERENCES dl_tags,
    table_id uuid   NOT NULL REFERENCES dl_tables,
    version  bigint NOT NULL,
    PRIMARY KEY (tag, table_id)
);

CREATE TABLE dl_validation_runs (
    run_id      uuid        NOT NULL PRIMARY KEY,
    table_id    uuid        NOT NULL REFERENCES dl_tables,
    version     bigint      NOT NULL,
    group_id    uuid,
    suite       text        NOT NULL,
    started_at  timestamptz NOT NULL,
    finished_at timestamptz NOT NULL,
    success     boolean     NOT NULL,
    findings    text        NOT NULL
);
CREATE INDEX dl_validation_runs_by_table ON dl_validation_runs (table_id, started_at);

-- What is published, who still reads, which versions have a name together, and what was checked.
CREATE TABLE dl_mirror_status (
    table_id     VARCHAR     NOT NULL REFERENCES dl_tables (table_id),
    version      BIGINT      NOT NULL,
    status       VARCHAR     NOT NULL CHECK (status IN ('PENDING', 'IN_FLIGHT', 'COMPLETE', 'FAILED')),
    attempts     INTEGER     NOT NULL DEFAULT 0,
    last_error   VARCHAR,
    created_at   TIMESTAMP   NOT NULL,
    updated_at   TIMESTAMP   NOT NULL,
    PRIMARY KEY (table_id, version)
);

CREATE TABLE dl_leases (
    lease_id   VARCHAR     NOT NULL PRIMARY KEY,
    table_id   VARCHAR     NOT NULL REFERENCES dl_tables (table_id),
    version    BIGINT      NOT NULL,
    purpose    VARCHAR     NOT NULL CHECK (purpose IN ('read', 'stage')),
    holder     VARCHAR     NOT NULL,
    detail     VARCHAR,
    created_at TIMESTAMP   NOT NULL,
    expires_at TIMESTAMP   NOT NULL
);

CREATE TABLE dl_tags (
    name       VARCHAR     NOT NULL PRIMARY KEY,
    created_at TIMESTAMP   NOT NULL,
    created_by VARCHAR,
    remark     VARCHAR
);

CREATE TABLE dl_tag_members (
    tag      VARCHAR NOT NULL REFERENCES dl_tags (name),
    table_id VARCHAR NOT NULL REFERENCES dl_tables (table_id),
    version  BIGINT NOT NULL,
    PRIMARY KEY (tag, table_id)
);

CREATE TABLE dl_validation_runs (
    run_id      VARCHAR     NOT NULL PRIMARY KEY,
    table_id    VARCHAR     NOT NULL REFERENCES dl_tables (table_id),
    version     BIGINT      NOT NULL,
    group_id    VARCHAR,
    suite       VARCHAR     NOT NULL,
    started_at  TIMESTAMP   NOT NULL,
    finished_at TIMESTAMP   NOT NULL,
    success     BOOLEAN     NOT NULL,
    findings    VARCHAR     NOT NULL
);

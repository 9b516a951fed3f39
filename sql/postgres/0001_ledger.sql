-- Which migrations this catalog has seen, with the sha256 of each file.
CREATE TABLE dl_migrations (
    number          integer     NOT NULL PRIMARY KEY,
    name            text        NOT NULL,
    sha256          text        NOT NULL,
    applied_at      timestamptz NOT NULL,
    applied_by      text        NOT NULL
);

-- Which migrations this catalog has seen, with the sha256 of each file.
CREATE TABLE dl_migrations (
    number          INTEGER     NOT NULL PRIMARY KEY,
    name            TEXT        NOT NULL,
    sha256          TEXT        NOT NULL,
    applied_at      TEXT        NOT NULL,
    applied_by      TEXT        NOT NULL
);

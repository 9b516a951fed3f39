-- Which migrations this catalog has seen, with the sha256 of each file.
CREATE TABLE dl_migrations (
    number          INTEGER     NOT NULL PRIMARY KEY,
    name            VARCHAR     NOT NULL,
    sha256          VARCHAR     NOT NULL,
    applied_at      TIMESTAMP   NOT NULL,
    applied_by      VARCHAR     NOT NULL
);

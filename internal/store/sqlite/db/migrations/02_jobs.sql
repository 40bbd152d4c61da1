-- Version 2: what GitHub told us, the jobs, the accounts of the job pools, and
-- the ids that may be seen once.

CREATE TABLE webhooks (
    delivery_id TEXT    NOT NULL PRIMARY KEY,
    version     INTEGER NOT NULL,
    due_at      INTEGER,
    expires_at  INTEGER,
    doc         TEXT    NOT NULL
) STRICT;

CREATE INDEX webhooks_by_due ON webhooks (due_at, delivery_id) WHERE due_at IS NOT NULL;
CREATE INDEX webhooks_by_expiry ON webhooks (expires_at) WHERE expires_at IS NOT NULL;

-- open_run is NULL once the job is done, and waiting_since unless it waits for a
-- host of its pool.
CREATE TABLE jobs (
    id            INTEGER NOT NULL PRIMARY KEY,
    version       INTEGER NOT NULL,
    repository    TEXT    NOT NULL,
    open_run      TEXT,
    pool          TEXT    NOT NULL,
    waiting_since INTEGER,
    due_at        INTEGER,
    expires_at    INTEGER,
    doc           TEXT    NOT NULL
) STRICT;

CREATE INDEX jobs_by_run ON jobs (repository, open_run, id) WHERE open_run IS NOT NULL;
CREATE INDEX jobs_by_pool ON jobs (pool, waiting_since, id) WHERE waiting_since IS NOT NULL;
CREATE INDEX jobs_by_due ON jobs (due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX jobs_by_expiry ON jobs (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE turns (
    pool    TEXT    NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL,
    doc     TEXT    NOT NULL
) STRICT;

CREATE TABLE seen (
    kind       TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (kind, id)
) STRICT;

CREATE INDEX seen_by_expiry ON seen (expires_at);

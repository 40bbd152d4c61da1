-- Version 1 of the embedded default: the state store and the queue in one file.
-- A row is the JSON document of its record, beside the columns that
-- conditions and indexes need. Times are nanoseconds since 1970; an attribute
-- that is empty in the record is NULL here, and so in no index of its own.

CREATE TABLE instances (
    host_key       TEXT    NOT NULL PRIMARY KEY,
    version        INTEGER NOT NULL,
    state          TEXT    NOT NULL,
    run_id         TEXT,
    resource_class TEXT    NOT NULL,
    usage_class    TEXT    NOT NULL,
    trust_key      TEXT    NOT NULL,
    pooled_at      INTEGER,
    due_at         INTEGER,
    expires_at     INTEGER,
    doc            TEXT    NOT NULL
) STRICT;

CREATE INDEX instances_by_run ON instances (run_id, host_key) WHERE run_id IS NOT NULL;
CREATE INDEX instances_by_pool ON instances (resource_class, usage_class, trust_key, pooled_at, host_key)
    WHERE pooled_at IS NOT NULL;
CREATE INDEX instances_by_due ON instances (due_at, host_key) WHERE due_at IS NOT NULL;
CREATE INDEX instances_by_expiry ON instances (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE reports (
    host_key TEXT NOT NULL PRIMARY KEY,
    doc      TEXT NOT NULL
) STRICT;

CREATE TABLE requests (
    repository TEXT    NOT NULL,
    run_id     TEXT    NOT NULL,
    request_id TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    due_at     INTEGER,
    expires_at INTEGER,
    doc        TEXT    NOT NULL,
    PRIMARY KEY (repository, run_id, request_id)
) STRICT;

CREATE INDEX requests_by_due ON requests (due_at, repository, run_id, request_id) WHERE due_at IS NOT NULL;
CREATE INDEX requests_by_expiry ON requests (expires_at) WHERE expires_at IS NOT NULL;

-- Ids never come back (AUTOINCREMENT): a reader's place in the history stays
-- good when everything before it has expired.
CREATE TABLE events (
    id         INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    expires_at INTEGER NOT NULL,
    repository TEXT,
    run_id     TEXT,
    doc        TEXT    NOT NULL
) STRICT;

CREATE INDEX events_by_run ON events (repository, run_id, id) WHERE run_id IS NOT NULL;
CREATE INDEX events_by_expiry ON events (expires_at);

CREATE TABLE leases (
    name    TEXT    NOT NULL PRIMARY KEY,
    holder  TEXT    NOT NULL,
    version INTEGER NOT NULL
) STRICT;

-- The queues of idle hosts, one per resource and usage class.
CREATE TABLE messages (
    id             INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    resource_class TEXT    NOT NULL,
    usage_class    TEXT    NOT NULL,
    visible_at     INTEGER NOT NULL,
    expires_at     INTEGER NOT NULL,
    receives       INTEGER NOT NULL DEFAULT 0,
    body           TEXT    NOT NULL
) STRICT;

CREATE INDEX messages_by_visibility ON messages (resource_class, usage_class, visible_at, id);
CREATE INDEX messages_by_expiry ON messages (expires_at);

-- The embedded default: the state store and the queue in one file. A row is the
-- JSON document of its record, beside the columns that conditions and indexes need. Times are nanoseconds since 1970; an attribute
-- that is empty in the record is NULL here, and so in no index of its own.

CREATE TABLE instances (
    host_key       TEXT    NOT NULL PRIMARY KEY,
    version        INTEGER NOT NULL,
    state          TEXT    NOT NULL,
    pool           TEXT    NOT NULL,
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
-- The idle hosts of a pool have an order of their own: those of another pool hide
-- none of them.
CREATE INDEX instances_by_pool ON instances (pool, resource_class, usage_class, trust_key, pooled_at, host_key)
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
    id          INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    expires_at  INTEGER NOT NULL,
    repository  TEXT,
    run_id      TEXT,
    instance_id TEXT,
    doc         TEXT    NOT NULL
) STRICT;

CREATE INDEX events_by_run ON events (repository, run_id, id) WHERE run_id IS NOT NULL;
CREATE INDEX events_by_instance ON events (instance_id, id) WHERE instance_id IS NOT NULL;
CREATE INDEX events_by_expiry ON events (expires_at);

-- The queues of idle hosts, as earlier builds kept them. They are in memory now, and nothing is written here: the table lets an earlier build
-- open the file after a rollback.
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

-- Services of runners in containers: what was last seen of them and decided.

CREATE TABLE services (
    name    TEXT    NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL,
    doc     TEXT    NOT NULL
) STRICT;

-- The jobs and the workers of services. Jobs are in order by every state, those that
-- have ended too.

CREATE TABLE work (
    service    TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    state      TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    due_at     INTEGER,
    expires_at INTEGER,
    doc        TEXT    NOT NULL,
    PRIMARY KEY (service, id)
) STRICT;

CREATE INDEX work_by_age ON work (service, state, created_at, id);
CREATE INDEX work_by_due ON work (due_at, service, id) WHERE due_at IS NOT NULL;
CREATE INDEX work_by_expiry ON work (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE workers (
    service    TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    expires_at INTEGER,
    doc        TEXT    NOT NULL,
    PRIMARY KEY (service, id)
) STRICT;

CREATE INDEX workers_by_expiry ON workers (expires_at) WHERE expires_at IS NOT NULL;

-- Few rows by name, apart by the prefixes of their names: the hold, the breakers, the accounts of limits and the leases.

CREATE TABLE guards (
    name    TEXT    NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL,
    doc     TEXT    NOT NULL
) STRICT;

-- The jobs and the workers of services. open_state is NULL once the job has ended.

CREATE TABLE work (
    service    TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    open_state TEXT,
    created_at INTEGER,
    due_at     INTEGER,
    expires_at INTEGER,
    doc        TEXT    NOT NULL,
    PRIMARY KEY (service, id)
) STRICT;

CREATE INDEX work_by_age ON work (service, open_state, created_at, id) WHERE open_state IS NOT NULL;
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

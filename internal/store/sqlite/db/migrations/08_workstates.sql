-- The jobs of services are in order by every state, those that have ended too. The
-- table is made anew, whichever columns it had.

CREATE TABLE work_by_state (
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

INSERT INTO work_by_state SELECT service, id, version,
    CASE WHEN json_valid(doc) THEN coalesce(json_extract(doc, '$.state'), '') ELSE '' END,
    coalesce(created_at, 0), due_at, expires_at, doc FROM work;
DROP TABLE work;
ALTER TABLE work_by_state RENAME TO work;

CREATE INDEX work_by_age ON work (service, state, created_at, id);
CREATE INDEX work_by_due ON work (due_at, service, id) WHERE due_at IS NOT NULL;
CREATE INDEX work_by_expiry ON work (expires_at) WHERE expires_at IS NOT NULL;

-- Services of runners in containers: what was last seen of them and decided.

CREATE TABLE services (
    name    TEXT    NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL,
    doc     TEXT    NOT NULL
) STRICT;

-- The guards of the fleet: the hold, the breakers and the accounts of limits.

CREATE TABLE guards (
    name    TEXT    NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL,
    doc     TEXT    NOT NULL
) STRICT;

-- Version 3: the history of one host.

ALTER TABLE events ADD COLUMN instance_id TEXT;
UPDATE events SET instance_id = json_extract(doc, '$.instanceId') WHERE json_valid(doc);
CREATE INDEX events_by_instance ON events (instance_id, id) WHERE instance_id IS NOT NULL;

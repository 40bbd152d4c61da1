-- The idle hosts of a pool have an order of their own: those of another pool hide
-- none of them.

ALTER TABLE instances ADD COLUMN pool TEXT NOT NULL DEFAULT '';
UPDATE instances SET pool = coalesce(json_extract(doc, '$.pool'), '') WHERE json_valid(doc);
DROP INDEX instances_by_pool;
CREATE INDEX instances_by_pool ON instances (pool, resource_class, usage_class, trust_key, pooled_at, host_key)
    WHERE pooled_at IS NOT NULL;

-- The quarantine of work that only crashes caused is lifted once without an operator.

-- Panics are counted apart from crashes: a panic names the work that caused it, so its quarantine is not lifted.
ALTER TABLE pipeline_runs ADD COLUMN panics integer NOT NULL DEFAULT 0;
-- The quarantine was lifted once: the next crash quarantines the work until an operator releases it.
ALTER TABLE pipeline_runs ADD COLUMN is_lifted boolean NOT NULL DEFAULT FALSE;
ALTER TABLE deliveries ADD COLUMN is_lifted boolean NOT NULL DEFAULT FALSE;
-- Hold only what can still be lifted, which is nothing on most days.
CREATE INDEX pipeline_runs_liftable ON pipeline_runs (updated_at)
    WHERE state = 'paused' AND crashes >= 3 AND panics = 0 AND NOT is_lifted;
CREATE INDEX deliveries_liftable ON deliveries (updated_at)
    WHERE state = 'dead' AND crashes >= 3 AND NOT is_lifted;

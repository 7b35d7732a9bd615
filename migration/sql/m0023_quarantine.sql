-- The operators' list of everything in quarantine. Runs and deliveries are read where they are, by these indexes, which
-- hold nothing on most days. What can be lifted is a part of them, so the indexes for that go.
CREATE INDEX pipeline_runs_quarantined ON pipeline_runs (updated_at)
    WHERE state = 'paused' AND (crashes >= 3 OR panics >= 2);
CREATE INDEX deliveries_quarantined ON deliveries (updated_at)
    WHERE state = 'dead' AND crashes >= 3;
DROP INDEX pipeline_runs_liftable;
DROP INDEX deliveries_liftable;

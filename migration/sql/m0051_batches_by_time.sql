-- The list of batches on the dashboard, the newest first. The number of a batch has its day only, and the time stands behind the
-- outcomes of the items in each row.
CREATE INDEX IF NOT EXISTS batches_by_taxpayer_id_created_at_batch_no ON batches (taxpayer_id, created_at, batch_no);

-- An operator decided that nothing more is to be done about a listed difference, and said why.
ALTER TABLE reconciliation_findings ADD COLUMN decided_at bigint;
ALTER TABLE reconciliation_findings ADD COLUMN decided_by bigint;
ALTER TABLE reconciliation_findings ADD COLUMN decided_because text;
-- Of the findings that were listed: those that are decided. `listed` counts the others.
ALTER TABLE reconciliations ADD COLUMN decided integer NOT NULL DEFAULT 0;

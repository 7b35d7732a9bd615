-- The person or program that asked for a run, as JSON like the actors of events. Null in runs of earlier versions.
ALTER TABLE pipeline_runs ADD COLUMN asked_by varchar;

-- The trace of the request that caused an event, a run or an audited action, in the form of the header `traceparent` of W3C
-- Trace Context. Null: no request did, or it was stored before traces were.
ALTER TABLE events ADD COLUMN trace varchar;
ALTER TABLE pipeline_runs ADD COLUMN trace varchar;
ALTER TABLE audit ADD COLUMN trace varchar;

-- Characters 4 to 35 are the id of the trace. Events have no such index, because it would make each create slower.
CREATE INDEX pipeline_runs_by_trace_id ON pipeline_runs (substr(trace, 4, 32)) WHERE trace IS NOT NULL;
CREATE INDEX audit_by_trace_id ON audit (substr(trace, 4, 32)) WHERE trace IS NOT NULL;

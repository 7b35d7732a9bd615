-- The invoices with which the authority is not done, or that it has rejected: the tabs of the dashboard count them at each view.
-- The condition is that of src/store/invoices/list_query.rs, word for word. A create costs nothing: a new invoice is in no such
-- state.
CREATE INDEX invoices_unsettled ON invoices (taxpayer_id, authority_status, created_at, id)
    WHERE authority_status IN ('QUEUED', 'VALIDATED', 'REJECTED', 'FAILED');

-- What waits and what was rejected is shown earliest deadline first, and counted. The deadline of a run stays, so that an attempt
-- that fails moves nothing here.
CREATE INDEX pipeline_runs_stopped_by_deadline ON pipeline_runs (taxpayer_id, state, deadline_at)
    WHERE state IN ('waiting', 'paused', 'refused');

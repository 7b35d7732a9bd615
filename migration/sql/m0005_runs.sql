-- Pipeline runs: a document on its way through the authority, and the log of its steps.

CREATE TABLE pipeline_runs (
    taxpayer_id bigint NOT NULL,
    id varchar NOT NULL,
    operation varchar NOT NULL,
    irn text NOT NULL,
    irn_key text NOT NULL,
    state varchar NOT NULL,
    -- What is sent to the authority: JSON, and its SHA-256.
    document text NOT NULL,
    digest varchar NOT NULL,
    -- The steps that are done: a JSON list.
    done text NOT NULL,
    -- A step whose call began and has no recorded outcome: the authority is asked before it is sent again.
    intent varchar,
    attempt integer NOT NULL,
    -- Processes that died while the present step was, or may have been, in progress.
    crashes integer NOT NULL DEFAULT 0,
    failing_since bigint,
    next_attempt_at bigint,
    deadline_at bigint NOT NULL DEFAULT 0,
    wait_reason text,
    last_error text,
    resolved_by varchar,
    qr_code text,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (taxpayer_id, id)
);
-- The IRN comes first, because operators look for it without knowing the taxpayer.
CREATE UNIQUE INDEX pipeline_runs_by_irn_key_taxpayer_id_operation
    ON pipeline_runs (irn_key, taxpayer_id, operation);
CREATE UNIQUE INDEX pipeline_runs_by_id ON pipeline_runs (id);
-- Lists of operators, newest first: ids grow with time.
CREATE INDEX pipeline_runs_by_state_id ON pipeline_runs (state, id);
CREATE INDEX pipeline_runs_by_operation_id ON pipeline_runs (operation, id);
-- Finds the runs of a day for the reconciliation.
CREATE INDEX pipeline_runs_by_taxpayer_id_updated_at ON pipeline_runs (taxpayer_id, updated_at);
-- Counts the runs that have not ended, of which there are few, without reading their documents.
CREATE INDEX pipeline_runs_unfinished ON pipeline_runs (state, wait_reason, deadline_at, created_at)
    WHERE state IN ('running', 'waiting', 'paused');
-- The runs of an account that need attention. A run that succeeds at the first attempt is never in it.
CREATE INDEX pipeline_runs_stopped ON pipeline_runs (taxpayer_id, updated_at)
    WHERE state IN ('waiting', 'paused', 'refused');

-- A row is written when a call begins and completed when its outcome is known.
CREATE TABLE pipeline_steps (
    taxpayer_id bigint NOT NULL,
    id varchar NOT NULL,
    run_id varchar NOT NULL,
    step varchar NOT NULL,
    attempt integer NOT NULL,
    outcome varchar,
    error text,
    started_at bigint NOT NULL,
    duration_ms bigint,
    PRIMARY KEY (taxpayer_id, id)
);
CREATE INDEX pipeline_steps_by_taxpayer_id_run_id_started_at
    ON pipeline_steps (taxpayer_id, run_id, started_at);

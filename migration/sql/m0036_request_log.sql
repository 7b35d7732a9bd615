-- The requests that accounts made with their API keys, for a few days. Rows are written in batches after the answer, and the
-- sweeper deletes the old ones.
CREATE TABLE request_log (
    id varchar NOT NULL PRIMARY KEY,
    at bigint NOT NULL,
    -- Null: an integrator's own request.
    taxpayer_id bigint,
    -- The integrator that may read the request, too.
    integrator_id bigint,
    request_id varchar NOT NULL,
    method varchar NOT NULL,
    -- With its query string, without secrets.
    path text NOT NULL,
    route varchar NOT NULL,
    status bigint NOT NULL,
    error_code varchar,
    duration_ms bigint NOT NULL,
    key_label varchar NOT NULL,
    -- The id or the IRN of the invoice that the request was about.
    invoice text,
    -- What is kept of the bodies: JSON.
    request text NOT NULL,
    response text NOT NULL
);
CREATE INDEX request_log_by_taxpayer_id ON request_log (taxpayer_id, id);
CREATE INDEX request_log_by_integrator_id ON request_log (integrator_id, id);
CREATE INDEX request_log_failed ON request_log (taxpayer_id, error_code, id) WHERE status >= 400;
CREATE INDEX request_log_by_invoice ON request_log (taxpayer_id, invoice, id) WHERE invoice IS NOT NULL;
CREATE INDEX request_log_by_time ON request_log (at);

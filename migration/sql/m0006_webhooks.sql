-- Webhooks: endpoints, how ERP systems take notifications, deliveries with their attempts, and replays.

-- At most one endpoint for each taxpayer.
CREATE TABLE webhooks (
    taxpayer_id bigint NOT NULL,
    id bigint NOT NULL,
    url text NOT NULL,
    -- A JSON list.
    enabled_events text NOT NULL,
    is_active boolean NOT NULL,
    disabled_reason text,
    -- The sequence of the last event before the endpoint was last disabled.
    disabled_after bigint,
    -- Sealed with the deployment's encryption key. Previous ones are JSON, each with the time until which it signs too.
    secret text NOT NULL,
    previous_secrets text NOT NULL,
    -- Verifies signatures where they are made with a key pair.
    public_key text,
    -- A JSON list of delays in seconds. Null: the deployment's schedule.
    retry_schedule text,
    -- The current streak of failures: JSON. Null: the last attempt succeeded.
    failure_streak text,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (taxpayer_id)
);

-- Apart from the endpoint, so that it can be set before there is one.
CREATE TABLE integrations (
    taxpayer_id bigint NOT NULL,
    erp_system varchar,
    auth_type varchar NOT NULL,
    data_format varchar NOT NULL,
    -- JSON.
    format text NOT NULL,
    -- Credentials, sealed; the other columns are read without the key.
    settings text,
    -- The networks that credentials may be sent to.
    allowed_networks text,
    -- Grows with each change: tokens and connections of older settings are recognised by it.
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (taxpayer_id)
);

-- An event has one delivery, however often it is attempted or replayed.
CREATE TABLE deliveries (
    taxpayer_id bigint NOT NULL,
    id varchar NOT NULL,
    event_id varchar NOT NULL,
    sequence bigint NOT NULL,
    kind varchar NOT NULL,
    -- Deliveries with equal keys are made in order: the IRN, or the event's id where it has none.
    order_key text NOT NULL,
    -- Pending, and no earlier delivery of the same order key is. The mark finds it however many wait behind it.
    is_first boolean NOT NULL DEFAULT FALSE,
    state varchar NOT NULL,
    -- All attempts, and those from before the last replay, which do not count towards the schedule.
    attempts integer NOT NULL,
    attempts_before integer NOT NULL DEFAULT 0,
    -- Processes that died while this was, or may have been, in flight. From the first on it is attempted alone.
    crashes integer NOT NULL DEFAULT 0,
    next_attempt_at bigint,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (taxpayer_id, id)
);
CREATE INDEX deliveries_by_taxpayer_id_state_sequence ON deliveries (taxpayer_id, state, sequence);
CREATE UNIQUE INDEX deliveries_by_taxpayer_id_sequence ON deliveries (taxpayer_id, sequence);
CREATE INDEX deliveries_by_taxpayer_id_kind_sequence ON deliveries (taxpayer_id, kind, sequence);
-- Only a few of all deliveries wait or are dead, so these indexes hold those alone. They come after the others: of
-- indexes that look equally good PostgreSQL takes the newest, and without statistics it does not know these are small.
CREATE INDEX deliveries_in_line ON deliveries (taxpayer_id, order_key, sequence) WHERE state = 'pending';
CREATE INDEX deliveries_dead ON deliveries (id) WHERE state = 'dead';
CREATE INDEX deliveries_first ON deliveries (taxpayer_id, next_attempt_at, sequence) WHERE is_first;

CREATE TABLE attempts (
    taxpayer_id bigint NOT NULL,
    delivery_id varchar NOT NULL,
    attempt integer NOT NULL,
    at bigint NOT NULL,
    -- The HTTP status. Null: there was no answer.
    status integer,
    -- The class of the failure. Null: the attempt succeeded.
    failure varchar,
    -- The beginning of the answer's body.
    response text NOT NULL,
    duration_ms bigint NOT NULL,
    -- Null: the phase did not take place, as connecting does not on an open connection.
    dns_ms bigint,
    connect_ms bigint,
    wait_ms bigint,
    read_ms bigint,
    PRIMARY KEY (taxpayer_id, delivery_id, attempt)
);

-- Delivers the events of `after < sequence <= until` again. `position` is the last one processed.
CREATE TABLE replays (
    taxpayer_id bigint NOT NULL,
    id varchar NOT NULL,
    scope varchar NOT NULL,
    state varchar NOT NULL,
    after bigint NOT NULL,
    until bigint NOT NULL,
    position bigint NOT NULL,
    queued bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (taxpayer_id, id)
);
CREATE INDEX replays_by_taxpayer_id_state ON replays (taxpayer_id, state);

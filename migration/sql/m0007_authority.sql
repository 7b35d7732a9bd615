-- What is learned from the authority: reference lists, invoices of suppliers, outages, and where its records differ
-- from ours.

-- The last copy of each list.
CREATE TABLE reference_lists (
    list varchar NOT NULL,
    -- JSON.
    items text NOT NULL,
    fetched_at bigint NOT NULL,
    PRIMARY KEY (list)
);

-- The inbox: invoices that suppliers sent to a taxpayer.
CREATE TABLE supplier_invoices (
    taxpayer_id bigint NOT NULL,
    irn_key text NOT NULL,
    irn text NOT NULL,
    supplier_name text,
    supplier_tin text,
    received_at bigint NOT NULL,
    acknowledged_at bigint,
    PRIMARY KEY (taxpayer_id, irn_key)
);
CREATE INDEX supplier_invoices_by_irn_key ON supplier_invoices (irn_key);
CREATE INDEX supplier_invoices_by_taxpayer_id_received_at ON supplier_invoices (taxpayer_id, received_at);

-- The documents as they were at receipt. Apart from the inbox, so that a page of it reads none.
CREATE TABLE supplier_documents (
    taxpayer_id bigint NOT NULL,
    irn_key text NOT NULL,
    document text NOT NULL,
    PRIMARY KEY (taxpayer_id, irn_key)
);

-- When the list of invoices in transit was last read to its end: its recent part, and all of it.
CREATE TABLE pull_cursors (
    name varchar NOT NULL,
    pulled_at bigint,
    swept_at bigint,
    PRIMARY KEY (name)
);

CREATE TABLE outages (
    id varchar NOT NULL,
    -- Constant while the outage lasts and null after it: with the unique index, one at a time.
    open varchar,
    -- The operations that fail, with times in microseconds: JSON.
    affected text NOT NULL,
    started_at bigint NOT NULL,
    ended_at bigint,
    PRIMARY KEY (id)
);
CREATE UNIQUE INDEX outages_by_open ON outages (open);
CREATE INDEX outages_by_ended_at ON outages (ended_at);

-- Who was notified of which edge, so that no one is notified twice. `sequence` is that of the event.
CREATE TABLE outage_notices (
    taxpayer_id bigint NOT NULL,
    outage_id varchar NOT NULL,
    edge varchar NOT NULL,
    sequence bigint NOT NULL,
    PRIMARY KEY (taxpayer_id, outage_id, edge)
);
CREATE INDEX outage_notices_by_outage_id_edge ON outage_notices (outage_id, edge);

-- Comparisons of a taxpayer's day with the authority's records.
CREATE TABLE reconciliations (
    taxpayer_id bigint NOT NULL,
    id varchar NOT NULL,
    -- A day in the authority's time zone.
    day varchar NOT NULL,
    asked_by varchar NOT NULL,
    state varchar NOT NULL,
    attempts integer NOT NULL,
    compared integer NOT NULL,
    agreed integer NOT NULL,
    in_progress integer NOT NULL,
    repaired integer NOT NULL,
    listed integer NOT NULL,
    error text,
    -- No later one of the same day is done: its findings are the current ones.
    is_latest boolean NOT NULL,
    created_at bigint NOT NULL,
    started_at bigint,
    ended_at bigint,
    PRIMARY KEY (taxpayer_id, id)
);
CREATE UNIQUE INDEX reconciliations_by_id ON reconciliations (id);
CREATE INDEX reconciliations_by_taxpayer_id_day_id ON reconciliations (taxpayer_id, day, id);
CREATE INDEX reconciliations_by_state_ended_at ON reconciliations (state, ended_at);
CREATE INDEX reconciliations_by_is_latest_listed ON reconciliations (is_latest, listed);

CREATE TABLE reconciliation_findings (
    taxpayer_id bigint NOT NULL,
    reconciliation_id varchar NOT NULL,
    number integer NOT NULL,
    kind varchar NOT NULL,
    irn text NOT NULL,
    local text,
    remote text,
    action varchar NOT NULL,
    detail text NOT NULL,
    PRIMARY KEY (taxpayer_id, reconciliation_id, number)
);

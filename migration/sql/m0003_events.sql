-- The event log of each taxpayer, and the keys of requests that were carried out: both are written in the
-- transaction of the change they belong to.

-- `sequence` has no gaps within a taxpayer. `hash` covers the event and the hash before it.
CREATE TABLE events (
    taxpayer_id bigint NOT NULL,
    sequence bigint NOT NULL,
    id varchar NOT NULL,
    kind varchar NOT NULL,
    irn text,
    -- The JSON text as it was hashed: never reformat it.
    data text NOT NULL,
    hash varchar NOT NULL,
    command_id varchar NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (taxpayer_id, sequence)
);
CREATE INDEX events_by_taxpayer_id_irn_sequence ON events (taxpayer_id, irn, sequence);
CREATE INDEX events_by_taxpayer_id_at ON events (taxpayer_id, at);

CREATE TABLE idempotency_keys (
    -- SHA-256 of caller and key. The primary key decides which of two concurrent requests is carried out.
    id varchar NOT NULL,
    -- SHA-256 of the request: tells whether a later one is the same.
    fingerprint varchar NOT NULL,
    command_id varchar,
    -- Sealed JSON. Null: the answer held a secret and was not kept.
    answer text,
    expires_at bigint NOT NULL,
    PRIMARY KEY (id)
);
CREATE INDEX idempotency_keys_by_expires_at ON idempotency_keys (expires_at);

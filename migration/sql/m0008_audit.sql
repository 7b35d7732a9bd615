-- The audit: who changed what. Triggers refuse to change or delete an entry (`m0008_audit.sqlite.sql`,
-- `m0008_audit.postgres.sql`).

CREATE TABLE audit (
    -- Ids grow with time: each index ends with the order of its list.
    id varchar NOT NULL,
    at bigint NOT NULL,
    -- An operator, an integrator or the command line.
    actor varchar NOT NULL,
    operator_id bigint,
    -- The integrator that may read the entry: it acted, or its account was changed.
    integrator_id bigint,
    action varchar NOT NULL,
    taxpayer_id bigint,
    -- The id of the run, delivery, key or other thing that was changed.
    subject varchar NOT NULL,
    from_state varchar,
    to_state varchar,
    reason text,
    PRIMARY KEY (id)
);
CREATE INDEX audit_by_taxpayer_id_id ON audit (taxpayer_id, id);
CREATE INDEX audit_by_subject_id ON audit (subject, id);
CREATE INDEX audit_by_operator_id_id ON audit (operator_id, id);
CREATE INDEX audit_by_integrator_id_id ON audit (integrator_id, id);

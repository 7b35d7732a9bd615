-- People who sign in: their sessions, their roles, and the person in the audit.

CREATE TABLE sessions (
    -- The SHA-256 of the token in the cookie.
    hash varchar NOT NULL,
    -- `kind` says which table `account_id` refers to: operators, contacts or integrators.
    kind varchar NOT NULL,
    account_id bigint NOT NULL,
    -- The taxpayer of a contact person.
    taxpayer_id bigint,
    created_at bigint NOT NULL,
    -- Written now and then, not with each page.
    seen_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    PRIMARY KEY (hash)
);
CREATE INDEX sessions_by_kind_account_id ON sessions (kind, account_id);
CREATE INDEX sessions_by_expires_at ON sessions (expires_at);

ALTER TABLE operators ADD COLUMN role varchar NOT NULL DEFAULT 'admin';
ALTER TABLE contacts ADD COLUMN role varchar NOT NULL DEFAULT 'owner';
-- Null: nobody signs in for this integrator.
ALTER TABLE integrators ADD COLUMN password_hash text;
ALTER TABLE audit ADD COLUMN contact_id bigint;

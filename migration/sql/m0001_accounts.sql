-- Accounts: integrators and their taxpayers, operators, the people who sign in, and API keys.
--
-- A column `…_key` holds the text beside it in lower case, so that a unique index compares without case.

-- The next unused id of each kind. Ids are taken in blocks and belong to one kind each, so they have gaps.
CREATE TABLE counters (
    name varchar NOT NULL,
    next bigint NOT NULL,
    PRIMARY KEY (name)
);

CREATE TABLE integrators (
    id bigint NOT NULL,
    name text NOT NULL,
    email varchar NOT NULL,
    email_key varchar NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (id)
);
CREATE UNIQUE INDEX integrators_by_email_key ON integrators (email_key);

CREATE TABLE operators (
    id bigint NOT NULL,
    email varchar NOT NULL,
    email_key varchar NOT NULL,
    password_hash text NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (id)
);
CREATE UNIQUE INDEX operators_by_email_key ON operators (email_key);

CREATE TABLE taxpayers (
    id bigint NOT NULL,
    integrator_id bigint NOT NULL,
    name text NOT NULL,
    email varchar NOT NULL,
    email_key varchar NOT NULL,
    -- The tax number as it was sent, and in the form in which two spellings of one number are equal.
    tin varchar NOT NULL,
    tin_normal text NOT NULL,
    phone varchar,
    nature_of_business text,
    service_id varchar NOT NULL,
    service_id_key varchar NOT NULL,
    business_id varchar NOT NULL,
    business_id_key varchar NOT NULL,
    address text NOT NULL,
    city varchar,
    state varchar,
    country varchar,
    subscription varchar NOT NULL,
    -- Whether the authority confirmed the tax number.
    verification varchar NOT NULL DEFAULT 'pending',
    verification_reason varchar,
    -- Name, tax number and email, a line each, in one case and one Unicode form for the search.
    search_text text NOT NULL DEFAULT '',
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (id)
);
CREATE UNIQUE INDEX taxpayers_by_email_key ON taxpayers (email_key);
CREATE UNIQUE INDEX taxpayers_by_service_id_key ON taxpayers (service_id_key);
CREATE UNIQUE INDEX taxpayers_by_business_id_key ON taxpayers (business_id_key);
CREATE INDEX taxpayers_by_integrator_id_id ON taxpayers (integrator_id, id);
CREATE UNIQUE INDEX taxpayers_by_tin_normal ON taxpayers (tin_normal);
CREATE INDEX taxpayers_by_verification_id ON taxpayers (verification, id);

-- The people who sign in for a taxpayer.
CREATE TABLE contacts (
    taxpayer_id bigint NOT NULL,
    id bigint NOT NULL,
    first_name text NOT NULL,
    last_name text NOT NULL,
    email varchar NOT NULL,
    email_key varchar NOT NULL,
    phone varchar,
    password_hash text NOT NULL,
    must_change_password boolean NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (taxpayer_id, id)
);
CREATE UNIQUE INDEX contacts_by_email_key ON contacts (email_key);

-- Keys of integrators and operators. Only the SHA-256 of a key is stored.
CREATE TABLE api_keys (
    hash varchar NOT NULL,
    -- `kind` says which table `owner_id` refers to.
    kind varchar NOT NULL,
    owner_id bigint NOT NULL,
    scope varchar NOT NULL DEFAULT 'full',
    created_at bigint NOT NULL,
    -- Null: the key does not expire.
    expires_at bigint,
    -- Written now and then, not with each use.
    last_used_at bigint,
    PRIMARY KEY (hash)
);
CREATE INDEX api_keys_by_kind_owner_id ON api_keys (kind, owner_id);

-- One row. The number grows in every transaction that changes or deletes API keys, so that a process knows when the
-- keys that it holds in memory may be outdated.
CREATE TABLE key_generation (
    current bigint NOT NULL,
    PRIMARY KEY (current)
);
INSERT INTO key_generation (current) VALUES (1);

-- The processes that hold API keys in memory, each with the generation of the keys that it holds at most.
CREATE TABLE key_leases (
    process varchar NOT NULL,
    generation bigint NOT NULL,
    PRIMARY KEY (process)
);

-- Second factors for everybody who signs in, and sessions whose person showed a short time ago that it is there.

CREATE TABLE second_factors (
    -- The kind and the id of the account, such as `operator/3`. The vault seals the secret for it.
    owner varchar NOT NULL,
    -- Sealed.
    secret text NOT NULL,
    -- Null: the person has not yet shown a first code, so the secret counts for nothing.
    confirmed_at bigint,
    -- The time step of the last code that was accepted; a code counts once.
    last_step bigint NOT NULL DEFAULT 0,
    -- The number of wrong codes since the first one of a day, and the time of that one.
    refused bigint NOT NULL DEFAULT 0,
    refused_since bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (owner)
);
INSERT INTO second_factors (owner, secret, confirmed_at, last_step)
SELECT 'operator/' || id, totp_secret, totp_confirmed_at, totp_last_step FROM operators WHERE totp_secret IS NOT NULL;
ALTER TABLE operators DROP COLUMN totp_secret;
ALTER TABLE operators DROP COLUMN totp_confirmed_at;
ALTER TABLE operators DROP COLUMN totp_last_step;

CREATE TABLE second_factor_codes (
    owner varchar NOT NULL,
    -- The SHA-256 of the recovery code. A used code is deleted.
    hash varchar NOT NULL,
    PRIMARY KEY (owner, hash)
);
INSERT INTO second_factor_codes (owner, hash) SELECT 'operator/' || operator_id, hash FROM recovery_codes;
DROP TABLE recovery_codes;

-- The time when the person last showed password and code.
ALTER TABLE sessions ADD COLUMN confirmed_at bigint NOT NULL DEFAULT 0;

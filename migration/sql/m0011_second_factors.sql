-- The second factor of operators: codes of an authenticator app (RFC 6238), and codes for when the app is lost.

-- Sealed. Null: the operator has none.
ALTER TABLE operators ADD COLUMN totp_secret text;
-- Null: the operator has not yet shown a first code, so the secret counts for nothing.
ALTER TABLE operators ADD COLUMN totp_confirmed_at bigint;
-- The time step of the last code that was accepted; a code counts once.
ALTER TABLE operators ADD COLUMN totp_last_step bigint NOT NULL DEFAULT 0;

CREATE TABLE recovery_codes (
    operator_id bigint NOT NULL,
    -- The SHA-256 of the code. A used code is deleted.
    hash varchar NOT NULL,
    PRIMARY KEY (operator_id, hash)
);

-- True: only the password was right so far; the session opens no page but the one that asks for the code.
ALTER TABLE sessions ADD COLUMN awaits_code boolean NOT NULL DEFAULT FALSE;

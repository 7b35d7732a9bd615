-- Accounts that were switched off, and from where people sign in.

-- Null: the account is enabled. A disabled account keeps its password and its second factor, and opens nothing.
ALTER TABLE operators ADD COLUMN disabled_at bigint;
ALTER TABLE integrators ADD COLUMN disabled_at bigint;
ALTER TABLE contacts ADD COLUMN disabled_at bigint;

-- The address and the browser that a person signed in with, as the list of sessions shows them.
ALTER TABLE sessions ADD COLUMN address varchar;
ALTER TABLE sessions ADD COLUMN browser varchar;

-- The address of the person who signed in, or tried to.
ALTER TABLE audit ADD COLUMN address varchar;

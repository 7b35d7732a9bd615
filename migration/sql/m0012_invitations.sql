-- People choose their own passwords: no text opens two accounts, and one-time links lead to the choice.

-- Null: the person has not chosen a password yet, and signs in only after using an invitation. The passwords that the
-- deployment or an owner gave, which the person had to change, end here, with the sessions that they opened.
ALTER TABLE contacts ADD COLUMN chosen_hash text;
UPDATE contacts SET chosen_hash = password_hash WHERE NOT must_change_password;
DELETE FROM sessions WHERE kind = 'contact' AND account_id IN (SELECT id FROM contacts WHERE must_change_password);
ALTER TABLE contacts DROP COLUMN password_hash;
ALTER TABLE contacts DROP COLUMN must_change_password;
ALTER TABLE contacts RENAME COLUMN chosen_hash TO password_hash;

CREATE TABLE invitations (
    -- The SHA-256 of the token in the link. A used link is deleted.
    hash varchar NOT NULL,
    -- `kind` says which table `account_id` refers to, as in sessions.
    kind varchar NOT NULL,
    account_id bigint NOT NULL,
    -- The taxpayer of a contact person.
    taxpayer_id bigint,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    PRIMARY KEY (hash)
);
-- A person has one link at a time: a new one ends the one before.
CREATE UNIQUE INDEX invitations_by_kind_account_id ON invitations (kind, account_id);
CREATE INDEX invitations_by_expires_at ON invitations (expires_at);

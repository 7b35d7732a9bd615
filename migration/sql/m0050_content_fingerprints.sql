-- SHA-256 of the request with the content of its JSON body instead of its bytes. Null if the content was not read, and in rows of
-- earlier versions.
ALTER TABLE idempotency_keys ADD COLUMN content_fingerprint varchar;

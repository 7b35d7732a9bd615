-- The name of an API key and the last four characters of its text, by which people tell keys apart. Null for keys that
-- were made before.

ALTER TABLE api_keys ADD COLUMN name text;
ALTER TABLE api_keys ADD COLUMN last_four varchar;

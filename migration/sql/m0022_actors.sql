-- Who caused an event: JSON with kind, id and name, as it was hashed. Null for events from before it was recorded.
ALTER TABLE events ADD COLUMN actor text;

-- The API key of a taxpayer that acted.
ALTER TABLE audit ADD COLUMN key_id varchar;

-- The address from which an API key was last used. Null before the first use, or if a process of before recorded it.
ALTER TABLE api_keys ADD COLUMN last_used_from varchar;

-- The audit filtered by what was done.
CREATE INDEX audit_by_action_id ON audit (action, id);

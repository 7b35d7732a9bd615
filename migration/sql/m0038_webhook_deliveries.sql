-- The headers of attempts.

-- JSON lists of names and values, without secrets. Null: they were not kept.
ALTER TABLE attempts ADD COLUMN request_headers text;
ALTER TABLE attempts ADD COLUMN response_headers text;

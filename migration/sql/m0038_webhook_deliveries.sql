-- The headers of attempts, the deliveries that a person chose to have made again, and the end of deleted endpoints.

-- JSON lists of names and values, without secrets. Null: they were not kept.
ALTER TABLE attempts ADD COLUMN request_headers text;
ALTER TABLE attempts ADD COLUMN response_headers text;

-- JSON. The deliveries that a replay is for. Null: its scope says so.
ALTER TABLE replays ADD COLUMN selection text;

-- The keys of endpoints that were deleted and whose deliveries, attempts and replays are still to be deleted, in small steps.
CREATE TABLE removed_endpoints (
    endpoint_key bigint NOT NULL,
    PRIMARY KEY (endpoint_key)
);
-- Before, deleting an endpoint left what had been delivered.
INSERT INTO removed_endpoints (endpoint_key)
SELECT DISTINCT taxpayer_id FROM deliveries
WHERE taxpayer_id < 0 AND NOT EXISTS (SELECT 1 FROM webhooks WHERE webhooks.taxpayer_id = deliveries.taxpayer_id);

-- The processes of the deployment. Each writes its row every second, and deletes it when it stops in order.
CREATE TABLE replicas (
    -- The name that the process writes into its leases: one for each start.
    id varchar PRIMARY KEY,
    -- The host and the port, or the setting `cluster.replica_name`.
    name varchar NOT NULL,
    -- By the clock of the database.
    seen_at bigint NOT NULL,
    -- Version, start, readiness, memory, actors and breakers: JSON.
    figures text NOT NULL
);

-- The last order of an operator to stop or to free the calls of an operation. Every process obeys it.
CREATE TABLE breaker_orders (
    operation varchar PRIMARY KEY,
    -- `trip` or `reset`.
    kind varchar NOT NULL,
    -- Grows with each order, so that a process obeys each once.
    number bigint NOT NULL,
    ordered_at bigint NOT NULL
);

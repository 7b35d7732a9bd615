-- Lanes: one row for each thing that one process at a time may work on. The row is its lock, lease, schedule and fence.

CREATE TABLE lanes (
    kind varchar NOT NULL,
    key varchar NOT NULL,
    -- Grows with each claim. Later writes of a holder match on it, so a holder that lost its lease changes nothing.
    epoch bigint NOT NULL,
    owner varchar,
    -- Null: no one holds the lane. In the past: its holder died.
    lease_until bigint,
    -- Null: there is nothing to do.
    next_due_at bigint,
    -- Grows with each change: tells whether cached state is current.
    version bigint NOT NULL,
    -- Runs are claimed in turns between taxpayers, the earliest deadline of each first. 0: belongs to no taxpayer.
    taxpayer_id bigint NOT NULL DEFAULT 0,
    deadline bigint NOT NULL DEFAULT 0,
    -- The step of a run that comes next: while it is blocked for the taxpayer the lane is skipped. `probe` for a parked
    -- endpoint, which new work does not wake. `timer` for a reconciliation that nobody requested.
    next_step varchar,
    -- Processes that died while they held the lane, and the one piece of work that the holder had recorded.
    crashes integer NOT NULL DEFAULT 0,
    working_on text,
    PRIMARY KEY (kind, key)
);
-- Most lanes have nothing to do, so the indexes leave those out. They must also not serve to find a lane by its key:
-- with statistics of few lanes PostgreSQL would prefer them to the primary key and read all lanes of a kind.
CREATE INDEX lanes_in_turn ON lanes (kind, taxpayer_id, deadline, next_due_at, lease_until, next_step)
    WHERE next_due_at IS NOT NULL;
CREATE INDEX lanes_due ON lanes (kind, next_due_at) WHERE next_due_at IS NOT NULL;
-- Finds lanes whose holder died without reading all that are due.
CREATE INDEX lanes_leased ON lanes (kind, lease_until) WHERE lease_until IS NOT NULL;

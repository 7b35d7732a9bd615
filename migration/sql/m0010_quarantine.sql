-- Commands that panicked twice and were put aside. Their senders got an error with the reference.

CREATE TABLE quarantine (
    -- The id of the command.
    reference varchar NOT NULL,
    actor varchar NOT NULL,
    command varchar NOT NULL,
    taxpayer_id bigint,
    at bigint NOT NULL,
    panic text NOT NULL,
    -- kept, replayed or dropped
    state varchar NOT NULL,
    -- The last replay or the drop. Null: nobody has touched the command.
    moved_at bigint,
    -- How the last replay ended.
    result text,
    -- The sealed contents (JSON). Null: this command cannot be replayed.
    contents text,
    PRIMARY KEY (reference)
);
CREATE INDEX quarantine_by_state_reference ON quarantine (state, reference);
CREATE INDEX quarantine_by_taxpayer_id_reference ON quarantine (taxpayer_id, reference);
CREATE INDEX quarantine_by_state_moved_at ON quarantine (state, moved_at);

-- The taxpayers that operators have paused. Every process obeys it: it refuses what these taxpayers write, and takes up
-- none of their runs.
CREATE TABLE taxpayer_pauses (
    taxpayer_id bigint NOT NULL PRIMARY KEY,
    since bigint NOT NULL,
    reason text
);

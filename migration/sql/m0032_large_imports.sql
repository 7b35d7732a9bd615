-- The pieces of a large file, which its import reads one after the other. Pieces without a row in `imports` are those of
-- an upload that broke off.
CREATE TABLE import_pieces (
    taxpayer_id bigint NOT NULL,
    import_no varchar NOT NULL,
    -- The position of the piece in the file, counted from 0.
    piece bigint NOT NULL,
    -- Whole documents, as a file of the same format; empty once the piece is imported.
    content text NOT NULL,
    -- The lines or documents of the file before the piece, less those that the piece repeats.
    places_before bigint NOT NULL,
    -- The documents that were not created, as CSV without a header; empty before the piece is imported.
    errors_csv text NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (taxpayer_id, import_no, piece)
);
-- For the pieces of uploads that broke off, which are never empty.
CREATE INDEX import_pieces_by_time ON import_pieces (created_at) WHERE content <> '';

-- How the pieces of a large file are read, as JSON; null for a file that was imported in one go.
ALTER TABLE imports ADD COLUMN source text;
-- The number of pieces, and the next one to import. A file without pieces was imported in one go.
ALTER TABLE imports ADD COLUMN pieces bigint NOT NULL DEFAULT 0;
ALTER TABLE imports ADD COLUMN next_piece bigint NOT NULL DEFAULT 0;

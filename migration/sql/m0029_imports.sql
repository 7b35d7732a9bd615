-- What became of a file of invoices. Its number is made of the digest of the file, so that a file has one row.
CREATE TABLE imports (
    taxpayer_id bigint NOT NULL,
    import_no varchar NOT NULL,
    -- The outcome of each document, the causes and the questions: JSON.
    report text NOT NULL,
    -- The documents that were not created, as CSV with the errors.
    errors_csv text NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (taxpayer_id, import_no)
);

-- What a taxpayer answers in advance for its files: JSON.
CREATE TABLE import_profiles (
    taxpayer_id bigint NOT NULL PRIMARY KEY,
    profile text NOT NULL,
    updated_at bigint NOT NULL
);

-- The settings of a taxpayer's account, as a JSON object; a member that is absent has its default.
ALTER TABLE taxpayers ADD COLUMN settings text NOT NULL DEFAULT '{}';

-- The picture on a taxpayer's documents, in base64. A table of its own, so that it is read only to print a document.
CREATE TABLE taxpayer_logos (
    taxpayer_id bigint NOT NULL,
    picture text NOT NULL,
    PRIMARY KEY (taxpayer_id)
);

-- The public pages of signed invoices. The token is the last part of the page's address, drawn at random when the link
-- is first asked for; it never changes, because it is printed on paper.
CREATE TABLE verify_links (
    taxpayer_id bigint NOT NULL,
    invoice_id bigint NOT NULL,
    token varchar NOT NULL,
    PRIMARY KEY (taxpayer_id, invoice_id)
);
CREATE UNIQUE INDEX verify_links_by_token ON verify_links (token);

-- The fields in which the document of a submission differed from the stored invoice, as a JSON array of
-- {path, sent, stored}. Null if it did not.
ALTER TABLE pipeline_runs ADD COLUMN differences text;

-- What a taxpayer writes: customers, catalog items, invoices, payments and batches.

CREATE TABLE customers (
    taxpayer_id bigint NOT NULL,
    id bigint NOT NULL,
    -- The number that the integrator knows the customer by.
    no text NOT NULL,
    tin varchar,
    category varchar NOT NULL,
    -- JSON.
    details text NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (taxpayer_id, id)
);
CREATE UNIQUE INDEX customers_by_taxpayer_id_no ON customers (taxpayer_id, no);
CREATE INDEX customers_by_taxpayer_id_tin ON customers (taxpayer_id, tin);

CREATE TABLE items (
    taxpayer_id bigint NOT NULL,
    id bigint NOT NULL,
    -- Names one item where there is a number; any number of items may have none.
    item_no text,
    name text NOT NULL,
    item_type varchar NOT NULL,
    tax_category text NOT NULL,
    product_category varchar,
    service_category varchar,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (taxpayer_id, id)
);
CREATE UNIQUE INDEX items_by_taxpayer_id_item_no ON items (taxpayer_id, item_no);
CREATE INDEX items_by_taxpayer_id_name ON items (taxpayer_id, name);

CREATE TABLE invoices (
    taxpayer_id bigint NOT NULL,
    id bigint NOT NULL,
    irn text NOT NULL,
    irn_key text NOT NULL,
    invoice_no text NOT NULL,
    batch_no varchar,
    category varchar NOT NULL,
    invoice_type text NOT NULL,
    invoice_date varchar NOT NULL,
    due_date varchar,
    currency varchar NOT NULL,
    -- The customer as it was when the invoice was written, and the lines: JSON. The number is copied out for filters.
    customer text NOT NULL,
    customer_no text NOT NULL DEFAULT '',
    lines text NOT NULL,
    status varchar NOT NULL,
    payment_status varchar NOT NULL,
    payable varchar NOT NULL,
    paid varchar NOT NULL,
    authority_status varchar NOT NULL,
    qr_code text NOT NULL,
    signed boolean NOT NULL,
    -- Fields that are accepted and stored but not returned: JSON.
    extras text NOT NULL,
    -- Tells whether a repeated create is the same invoice.
    content_digest varchar NOT NULL,
    -- Numbers and names of invoice and customer, in lower case; no query but the search reads it.
    search_text text NOT NULL DEFAULT '',
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    edited_at bigint,
    PRIMARY KEY (taxpayer_id, id)
);
CREATE UNIQUE INDEX invoices_by_taxpayer_id_invoice_no ON invoices (taxpayer_id, invoice_no);
CREATE UNIQUE INDEX invoices_by_taxpayer_id_irn_key ON invoices (taxpayer_id, irn_key);
-- The order of the list. Searches and wide ranges look through the list in this order. With the filters in the index
-- they read no row that is not on the page. `customer_no` and `batch_no` are left out: PostgreSQL allows an index entry 2,700 bytes, and the
-- search text may take 2,000.
CREATE INDEX invoices_as_listed ON invoices
    (taxpayer_id, created_at, id, status, payment_status, category, invoice_date, updated_at, search_text);
-- Each filter has an index that ends with the order of the list, so that a page costs the same however many invoices
-- there are.
CREATE INDEX invoices_by_taxpayer_id_batch_no_created_at_id
    ON invoices (taxpayer_id, batch_no, created_at, id) WHERE batch_no IS NOT NULL;
CREATE INDEX invoices_by_taxpayer_id_status_created_at_id ON invoices (taxpayer_id, status, created_at, id);
CREATE INDEX invoices_by_taxpayer_id_payment_status_created_at_id
    ON invoices (taxpayer_id, payment_status, created_at, id);
CREATE INDEX invoices_by_taxpayer_id_category_created_at_id ON invoices (taxpayer_id, category, created_at, id);
CREATE INDEX invoices_by_taxpayer_id_invoice_date_created_at_id
    ON invoices (taxpayer_id, invoice_date, created_at, id);
CREATE INDEX invoices_by_taxpayer_id_customer_no_created_at_id
    ON invoices (taxpayer_id, customer_no, created_at, id);
CREATE INDEX invoices_by_taxpayer_id_updated_at_created_at_id
    ON invoices (taxpayer_id, updated_at, created_at, id);

-- The payment ledger: one entry for each payment update. `sequence` is that of the event it caused.
CREATE TABLE payment_entries (
    taxpayer_id bigint NOT NULL,
    sequence bigint NOT NULL,
    invoice_id bigint NOT NULL,
    status varchar NOT NULL,
    amount varchar NOT NULL,
    reference text,
    remark text,
    at bigint NOT NULL,
    PRIMARY KEY (taxpayer_id, sequence)
);
CREATE INDEX payment_entries_by_taxpayer_id_invoice_id_sequence
    ON payment_entries (taxpayer_id, invoice_id, sequence);

CREATE TABLE batches (
    taxpayer_id bigint NOT NULL,
    batch_no varchar NOT NULL,
    created integer NOT NULL,
    duplicates integer NOT NULL,
    failed integer NOT NULL,
    -- The outcome of each item: JSON.
    items text NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (taxpayer_id, batch_no)
);

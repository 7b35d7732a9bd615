-- What customers still owe, what was due first at the beginning. The condition is that of src/store/invoices/owed.rs, word for
-- word. A create costs nothing: a new invoice is a draft.
CREATE INDEX invoices_owed ON invoices (taxpayer_id, (COALESCE(due_date, '9999-12-31')))
    WHERE payment_status IN ('PENDING', 'PARTIAL') AND status NOT IN ('draft', 'cancelled');

-- The beginning of name, number and TIN in lower case: the order of the list of customers, and what a search looks through.
ALTER TABLE customers ADD COLUMN search_text text NOT NULL DEFAULT '';
CREATE INDEX customers_by_taxpayer_id_search_text ON customers (taxpayer_id, search_text);

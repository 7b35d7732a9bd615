-- The orders and the filter that lists of invoices got: by due date, by payable (see the files of the two databases), and by
-- the status at the authority. The expressions are those of src/store/invoices/list_sort.rs; an invoice without a due date
-- comes after all others.

CREATE INDEX IF NOT EXISTS invoices_by_taxpayer_id_due_date_created_at_id
    ON invoices (taxpayer_id, (COALESCE(due_date, '9999-12-31')), created_at, id);
CREATE INDEX IF NOT EXISTS invoices_by_taxpayer_id_authority_status_created_at_id
    ON invoices (taxpayer_id, authority_status, created_at, id);

-- The orders and filters that lists of invoices got. An index costs each create a page, so that only a question that is asked
-- often, or whose answer is far down the list, has one of its own: what is due soon or overdue. The expression is that of
-- src/store/invoices/list_sort.rs; an invoice without a due date comes after all others.
CREATE INDEX IF NOT EXISTS invoices_by_taxpayer_id_due_date_created_at_id
    ON invoices (taxpayer_id, (COALESCE(due_date, '9999-12-31')), created_at, id);

-- Words of which there are few are found in the list's own index, which holds them all: no row is read that is not shown.
DROP INDEX IF EXISTS invoices_by_taxpayer_id_payment_status_created_at_id;
DROP INDEX IF EXISTS invoices_by_taxpayer_id_category_created_at_id;
DROP INDEX IF EXISTS invoices_as_listed;
CREATE INDEX invoices_as_listed ON invoices (
    taxpayer_id,
    created_at,
    id,
    status,
    payment_status,
    authority_status,
    category,
    invoice_date,
    updated_at,
    payable,
    search_text
);

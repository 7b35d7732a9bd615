UPDATE invoices SET corrects = coalesce(
        extras::json ->> 'original_invoice_reference', extras::json #>> '{billing_reference,0,irn}')
    WHERE extras LIKE '%"original_invoice_reference"%' OR extras LIKE '%"billing_reference"%';

UPDATE invoices SET corrects = coalesce(extras ->> '$.original_invoice_reference', extras ->> '$.billing_reference[0].irn')
    WHERE extras LIKE '%"original_invoice_reference"%' OR extras LIKE '%"billing_reference"%';

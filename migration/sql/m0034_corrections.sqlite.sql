UPDATE invoices SET corrects = coalesce(extras ->> '$.original_invoice_reference', extras ->> '$.billing_reference[0].irn')
    WHERE extras LIKE '%"original_invoice_reference"%' OR extras LIKE '%"billing_reference"%';
-- The service id of an IRN, in the spelling of `irn_key`.
UPDATE invoices SET corrects = substr(corrects, 1, length(corrects) - 17) || upper(substr(corrects, -17, 8)) || substr(corrects, -9)
    WHERE corrects LIKE '_%-________-________';

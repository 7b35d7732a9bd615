UPDATE invoices SET corrects = coalesce(
        extras::json ->> 'original_invoice_reference', extras::json #>> '{billing_reference,0,irn}')
    WHERE extras LIKE '%"original_invoice_reference"%' OR extras LIKE '%"billing_reference"%';
-- The service id of an IRN, in the spelling of `irn_key`.
UPDATE invoices SET corrects = left(corrects, -17) || upper(left(right(corrects, 17), 8)) || right(corrects, 9)
    WHERE corrects LIKE '_%-________-________';

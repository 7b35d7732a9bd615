UPDATE invoices SET corrects = CASE extras ->> '$.original_invoice_reference_type'
        WHEN 'PORTAL_ID' THEN CASE WHEN corrects <> '' AND corrects NOT GLOB '*[^0-9]*' AND length(corrects) <= 18
            THEN 'id:' || CAST(corrects AS bigint) END
        WHEN 'INTERNAL_INVOICE_NO' THEN 'number:' || (extras ->> '$.original_invoice_reference')
        WHEN 'EXTERNAL_INVOICE_NO' THEN 'number:' || (extras ->> '$.original_invoice_reference')
        ELSE CASE WHEN corrects LIKE '_%-________-________' THEN corrects END
    END
    WHERE corrects IS NOT NULL;

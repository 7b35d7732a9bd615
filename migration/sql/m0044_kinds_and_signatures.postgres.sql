-- A credit note is known by its name, whatever stands between the words.
UPDATE invoices SET is_credit_note = TRUE
    WHERE NOT is_credit_note AND coalesce(
        CASE WHEN extras LIKE '%"invoice_type_code"%' THEN extras::json ->> 'invoice_type_code' END,
        regexp_replace(lower(invoice_type), '[^a-z0-9]', '', 'g'))
        IN ('380', '393', 'creditnote', 'selfbilledcreditnote');

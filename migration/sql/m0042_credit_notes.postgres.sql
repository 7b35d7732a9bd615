UPDATE invoices SET is_credit_note = TRUE
    WHERE coalesce(
        CASE WHEN extras LIKE '%"invoice_type_code"%' THEN extras::json ->> 'invoice_type_code' END,
        lower(replace(replace(replace(trim(invoice_type), ' ', ''), '-', ''), '_', '')))
        IN ('380', '393', 'creditnote', 'selfbilledcreditnote');

-- A credit note is known by its name, whatever stands between the words.
UPDATE invoices SET is_credit_note = TRUE
    WHERE NOT is_credit_note AND coalesce(
        CASE WHEN extras LIKE '%"invoice_type_code"%' THEN extras ->> '$.invoice_type_code' END,
        (WITH RECURSIVE spelled(at, letters) AS (
            SELECT 1, ''
            UNION ALL
            SELECT at + 1, letters || CASE WHEN substr(invoice_type, at, 1) GLOB '[0-9A-Za-z]'
                THEN lower(substr(invoice_type, at, 1)) ELSE '' END
            FROM spelled WHERE at <= length(invoice_type))
        SELECT letters FROM spelled ORDER BY at DESC LIMIT 1))
        IN ('380', '393', 'creditnote', 'selfbilledcreditnote');

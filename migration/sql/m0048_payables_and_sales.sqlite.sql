UPDATE invoices SET is_sale = FALSE
    WHERE coalesce(
        CASE WHEN extras LIKE '%"invoice_type_code"%' THEN extras ->> '$.invoice_type_code' END,
        (WITH RECURSIVE spelled(at, letters) AS (
            SELECT 1, ''
            UNION ALL
            SELECT at + 1, letters || CASE WHEN substr(invoice_type, at, 1) GLOB '[0-9A-Za-z]'
                THEN lower(substr(invoice_type, at, 1)) ELSE '' END
            FROM spelled WHERE at <= length(invoice_type))
        SELECT letters FROM spelled ORDER BY at DESC LIMIT 1))
        IN ('385', '388', '389', '390', '393', '394', '395', '396', '399', '400', '402', '404', '406', '408',
            'selfbilled', 'statementofaccount', 'purchaseorder', 'proforma', 'selfbilledcreditnote', 'selfbilledinvoice',
            'creditnoterequest', 'invoicerequest', 'billoflading', 'waybill', 'shippinginstructions',
            'certificateoforigin', 'customsdeclaration', 'packinglist');

UPDATE invoices SET is_sale = FALSE
    WHERE coalesce(
        CASE WHEN extras LIKE '%"invoice_type_code"%' THEN extras::json ->> 'invoice_type_code' END,
        regexp_replace(lower(invoice_type), '[^a-z0-9]', '', 'g'))
        IN ('385', '388', '389', '390', '393', '394', '395', '396', '399', '400', '402', '404', '406', '408',
            'selfbilled', 'statementofaccount', 'purchaseorder', 'proforma', 'selfbilledcreditnote', 'selfbilledinvoice',
            'creditnoterequest', 'invoicerequest', 'billoflading', 'waybill', 'shippinginstructions',
            'certificateoforigin', 'customsdeclaration', 'packinglist');

-- Without the authority's keys no QR code was made, and a signed invoice was kept as one that is not signed.
UPDATE invoices SET signed = TRUE WHERE NOT signed AND status IN ('submitted', 'transmitted');

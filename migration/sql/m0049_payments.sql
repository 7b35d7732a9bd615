-- The day of the payment, as it was sent: YYYY-MM-DD. Null if none was sent, and in entries of earlier versions.
ALTER TABLE payment_entries ADD COLUMN payment_date varchar;

-- The rows through which a refund may be due: signed credit notes that are not used up, and invoices that were signed over another
-- amount than is stored. The dashboard counts the refunds at each view of the list. The condition is that of
-- src/store/invoices/refunds_due.rs, word for word. A create costs nothing: a new invoice is not signed.
CREATE INDEX IF NOT EXISTS invoices_with_refunds ON invoices (taxpayer_id, created_at, id)
    WHERE ((is_credit_note AND signed AND payment_status <> 'PAID') OR signed_payable IS NOT NULL);

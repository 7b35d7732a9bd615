-- The payable of the signed document, if it is not that of the stored one. It counts for payments.
ALTER TABLE invoices ADD COLUMN signed_payable text;
-- False for a document that is no sale of the taxpayer: the taxpayer is the buyer, or it claims no payment.
ALTER TABLE invoices ADD COLUMN is_sale boolean NOT NULL DEFAULT TRUE;

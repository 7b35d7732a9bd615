-- True for a credit note: nobody owes it, and sums subtract it.
ALTER TABLE invoices ADD COLUMN is_credit_note boolean NOT NULL DEFAULT FALSE;

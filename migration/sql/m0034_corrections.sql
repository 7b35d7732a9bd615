-- The corrections of signed invoices. A row is written in the transaction that creates its credit note.
CREATE TABLE corrections (
    taxpayer_id bigint NOT NULL,
    correction_no varchar NOT NULL,
    -- The invoice that is corrected.
    invoice_id bigint NOT NULL,
    -- Its documents, and how far it has come: JSON.
    record text NOT NULL,
    -- The replacement as it is to be created: JSON; null if there is none.
    replacement text,
    created_at bigint NOT NULL,
    PRIMARY KEY (taxpayer_id, correction_no)
);
CREATE INDEX corrections_by_taxpayer_id_invoice_id ON corrections (taxpayer_id, invoice_id, created_at);

-- The invoice that this one refers to as a credit note does, as it was sent; an IRN is in the spelling of `irn_key`.
ALTER TABLE invoices ADD COLUMN corrects text;
-- Few invoices refer to another one, so a create costs nothing.
CREATE INDEX invoices_by_taxpayer_id_corrects ON invoices (taxpayer_id, corrects) WHERE corrects IS NOT NULL;

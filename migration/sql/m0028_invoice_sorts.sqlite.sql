-- Digits padded to one length and without zeros at the end, so that the order of the texts is that of the amounts.
CREATE INDEX IF NOT EXISTS invoices_by_taxpayer_id_payable_created_at_id ON invoices (
    taxpayer_id,
    (substr('000000000000000000000000', 1, 25 - instr(payable || '.', '.')) ||
        rtrim(payable || CASE WHEN instr(payable, '.') > 0 THEN '' ELSE '.' END, '0')),
    created_at,
    id
);

CREATE INDEX IF NOT EXISTS invoices_by_taxpayer_id_payable_created_at_id
    ON invoices (taxpayer_id, (CAST(payable AS numeric)), created_at, id);

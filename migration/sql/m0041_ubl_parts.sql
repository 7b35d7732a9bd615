-- What the UBL file of an imported invoice says and no field of the invoice carries. It goes back into its UBL.
CREATE TABLE invoice_ubl_parts (
    taxpayer_id bigint NOT NULL,
    invoice_id bigint NOT NULL,
    -- JSON: the parts, and the amounts of the lines and taxes that they were read with.
    parts text NOT NULL,
    PRIMARY KEY (taxpayer_id, invoice_id)
);

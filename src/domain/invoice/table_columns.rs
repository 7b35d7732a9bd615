//! The columns in which invoices leave and enter the service as tables (CSV, XLSX): the fields of Create Invoice
//! (Standard) by their paths, one row a line. What was exported can be imported again.

/// The fields of an invoice. They are the same in each of its rows.
pub const INVOICE_COLUMNS: [&str; 19] = [
    "invoice_no",
    "invoice_category",
    "invoice_type",
    "invoice_type_code",
    "original_invoice_reference",
    "original_invoice_reference_type",
    "invoice_date",
    "due_date",
    "currency",
    "customer.no",
    "customer.name",
    "customer.email",
    "customer.tin",
    "customer.business_description",
    "customer.address_street_name",
    "customer.address_city",
    "customer.address_state",
    "customer.address_postal_code",
    "customer.address_country",
];

/// The fields of a line, each with this prefix in the tables' headers.
pub const LINE_PREFIX: &str = "line.";

pub const LINE_COLUMNS: [&str; 11] = [
    "item_name",
    "item_no",
    "item_type",
    "unit_price",
    "quantity",
    "price_unit",
    "tax_category",
    "product_category",
    "service_category",
    "discount_rate",
    "discount_amount",
];

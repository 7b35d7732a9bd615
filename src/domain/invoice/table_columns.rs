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

/// The columns of exports that state a sum of the invoice, and that of a line, which has the prefix, too. An import
/// creates no invoice that comes to another sum.
pub const SUM_COLUMNS: [&str; 3] = ["net_amount", "tax_amount", "payable_amount"];
pub const LINE_SUM_COLUMN: &str = "net_amount";

/// The columns that exports have after those of the invoice and the line: what the service knows besides. An import
/// ignores all but the sums. The amounts of the invoice stand in each of its rows, so a sum is over the rows whose
/// `line.position` is 1.
pub const EXPORT_COLUMNS: [&str; 14] = [
    "line.position",
    "line.net_amount",
    "id",
    "irn",
    "status",
    "payment_status",
    "authority_status",
    "net_amount",
    "tax_amount",
    "payable_amount",
    "amount_paid",
    "batch_no",
    "created_at",
    "updated_at",
];

/// Returns the header of a table of exported invoices.
pub fn export_header() -> Vec<String> {
    let line = LINE_COLUMNS.map(|name| format!("{LINE_PREFIX}{name}"));
    let invoice = INVOICE_COLUMNS.map(str::to_owned);
    let rest = EXPORT_COLUMNS.map(str::to_owned);
    invoice.into_iter().chain(line).chain(rest).collect()
}

/// The columns of a table of the outcomes of a batch, one row an error; an invoice without errors has one row.
pub const BATCH_COLUMNS: [&str; 8] = [
    "index",
    "invoice_no",
    "outcome",
    "id",
    "irn",
    "error_field",
    "error_message",
    "duplicate",
];

//! The columns of exported and imported tables of invoices (CSV, XLSX). They are the fields of Create Invoice
//! (Standard) by their paths, and each row is one line of an invoice. An exported table can be imported again.

/// The fields of an invoice. All rows of an invoice have the same values in them.
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

/// The prefix of the fields of a line in the headers of tables.
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

/// The columns with sums of the invoice. `LINE_SUM_COLUMN`, with the prefix of a line, is the amount of the line. An
/// import refuses an invoice whose computed sums differ from these.
pub const SUM_COLUMNS: [&str; 3] = ["net_amount", "tax_amount", "payable_amount"];
pub const LINE_SUM_COLUMN: &str = "net_amount";

/// The columns that only exports have, after those of the invoice and the line. An import ignores them, except for the
/// sums. The amounts of an invoice are in each of its rows, so a total must include only rows whose `line.position` is
/// 1.
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

/// The columns of the table of a batch's outcomes. Each error has a row; an invoice without errors has one row. The
/// warnings of an invoice are one text, in each of its rows.
pub const BATCH_COLUMNS: [&str; 9] = [
    "index",
    "invoice_no",
    "outcome",
    "id",
    "irn",
    "error_field",
    "error_message",
    "duplicate",
    "warnings",
];

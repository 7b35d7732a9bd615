//! The JSON form of an invoice (spec.md, "Invoice object"). API responses and events use the same form.

use jiff::Timestamp;
use serde::Serialize;

use crate::domain::invoice::{Invoice, Line};
use crate::domain::kernel::codes::{AuthorityStatus, Category, PaymentStatus, WorkflowStatus};
use crate::domain::kernel::ids::InvoiceId;
use crate::domain::money::Amount;

#[derive(Debug, Serialize)]
pub struct InvoiceObject<'a> {
    id: InvoiceId,
    irn: &'a str,
    invoice_no: &'a str,
    external_invoice_no: &'a str,
    invoice_category: Category,
    invoice_type: &'a str,
    invoice_date: String,
    due_date: Option<String>,
    currency: &'a str,
    created_at: String,
    updated_at: String,
    is_edited: bool,
    edited_at: Option<String>,
    status: WorkflowStatus,
    payment_status: PaymentStatus,
    authority_data: AuthorityObject<'a>,
    customer: CustomerObject<'a>,
    invoice_lines: Vec<LineObject<'a>>,
}

#[derive(Debug, Serialize)]
struct AuthorityObject<'a> {
    qr_code: &'a str,
    status: AuthorityStatus,
}

#[derive(Debug, Serialize)]
struct CustomerObject<'a> {
    external_customer_no: &'a str,
    name: &'a str,
    tin: Option<&'a str>,
    email: &'a str,
}

#[derive(Debug, Serialize)]
struct LineObject<'a> {
    item_name: &'a str,
    /// The number of the item. If the item has no number, its name is shown in this field instead.
    item_no: &'a str,
    item_type: String,
    unit_price: Amount,
    quantity: Amount,
    tax_category: &'a str,
    product_category: Option<&'a str>,
    service_category: Option<&'a str>,
}

impl<'a> From<&'a Invoice> for InvoiceObject<'a> {
    fn from(invoice: &'a Invoice) -> Self {
        Self {
            id: invoice.id,
            irn: invoice.irn.as_str(),
            invoice_no: &invoice.invoice_no,
            external_invoice_no: &invoice.invoice_no,
            invoice_category: invoice.category,
            invoice_type: &invoice.invoice_type,
            invoice_date: invoice.invoice_date.to_string(),
            due_date: invoice.due_date.map(|date| date.to_string()),
            currency: &invoice.currency,
            created_at: plain_time(invoice.created_at),
            updated_at: plain_time(invoice.updated_at),
            is_edited: invoice.edited_at.is_some(),
            edited_at: invoice.edited_at.map(plain_time),
            status: invoice.status,
            payment_status: invoice.payment.status,
            authority_data: AuthorityObject {
                qr_code: &invoice.authority.qr_code,
                status: invoice.authority.status,
            },
            customer: CustomerObject {
                external_customer_no: &invoice.customer.external_customer_no,
                name: &invoice.customer.name,
                tin: invoice.customer.tin.as_deref(),
                email: &invoice.customer.email,
            },
            invoice_lines: invoice.lines.iter().map(LineObject::from).collect(),
        }
    }
}

impl<'a> From<&'a Line> for LineObject<'a> {
    fn from(line: &'a Line) -> Self {
        Self {
            item_name: &line.item_name,
            item_no: line.item_no.as_deref().unwrap_or(&line.item_name),
            item_type: line.item_type.as_str().to_ascii_lowercase(),
            unit_price: line.unit_price,
            quantity: line.quantity,
            tax_category: &line.tax_category,
            product_category: line.product_category.as_deref(),
            service_category: line.service_category.as_deref(),
        }
    }
}

/// Formats a time as `YYYY-MM-DD HH:mm:ss` in UTC.
pub fn plain_time(moment: Timestamp) -> String {
    moment.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Formats a time as ISO 8601 in UTC, with microseconds and `Z`.
pub fn precise_time(moment: Timestamp) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

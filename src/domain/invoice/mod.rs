//! An invoice and its draft. A draft is a create request that has passed every rule of its form. `extras` holds the
//! request's fields for which the type has no field of its own. They are stored, but the Invoice object of the API
//! leaves them out.
//!
//! | File | Content |
//! |---|---|
//! | `batch` | a batch: a list of invoices in one request |
//! | `breakdown` | the amounts of an invoice: the amount of each line, the tax of each category, and the totals |
//! | `calculation` | computes what a caller may leave out of a document: the amount and the tax of each line, the taxes and the totals |
//! | `calculation_line` | one line of a document whose amounts are computed |
//! | `calculation_taxes` | the taxes of a document whose amounts are computed |
//! | `calculation_terms` | reads the amounts of a document, and writes the terms of a sum as a fault shows them: `1,000.00 + 75.00` |
//! | `corrected_reference` | the reference by which a credit note or debit note names the invoice that it corrects |
//! | `document_amounts` | the lines and the amounts in the document of a stored invoice |
//! | `document_difference` | compares a sent document with the stored invoice |
//! | `history` | the states of an invoice after each of its events |
//! | `invoice_ref` | the reference by which a caller selects an existing invoice |
//! | `invoice_view` | the JSON form of an invoice (spec.md, "Invoice object") |
//! | `irn` | the invoice reference number (IRN): `{invoice_no}-{service_id}-{YYYYMMDD}` |
//! | `item` | the catalog of the items that a taxpayer sells |
//! | `lifecycle` | the lifecycle of an invoice: every state, transition and refusal (spec.md, "States and transitions") |
//! | `line_terms` | the formula for the amount of a line |
//! | `number_series` | invoice numbers in series: numbers with the same text before the digits at their end (`INV-0017`) |
//! | `owed` | the debts of customers: the unpaid parts of their invoices, less the unpaid parts of their credit notes |
//! | `period_report` | the tables of a report: the sums with VAT, the VAT by rate, and the gaps in the series of invoice numbers |
//! | `period_summary` | the sums of a period's invoices by currency, kind of document and status, the VAT of its sales, and the series of the invoice numbers |
//! | `qr_picture` | the picture of a QR code: its dark squares as the path of an SVG, as an SVG file and as a PNG file |
//! | `redaction` | hides contact data of people and secrets in documents |
//! | `report_body` | builds the body of Report (spec.md) from the document of a stored invoice |
//! | `report_period` | the period of a report: a month, a quarter or a year |
//! | `revision` | Update Invoice (spec.md), which replaces the customer, the lines and some details of an invoice |
//! | `stored_document` | builds the document of a stored invoice in the shape of Submit (spec.md) |
//! | `table_columns` | the columns of exported and imported tables of invoices (CSV, XLSX) |
//! | `table_rows` | the rows of exported tables of invoices and batches (CSV, XLSX), with the columns of `table_columns` |
//! | `timeline` | the timeline of one invoice: events, calls to the authority and delivery attempts, ordered by time |
//! | `totals` | the payable of an invoice whose caller did not send it |
//! | `trade` | converts a document in the shape of Submit to a `TradeDocument`, from which its PDF and its other files are made |
//! | `trade_sums` | reads the charges, taxes and totals of a document in the shape of Submit, for its PDF and its other files |
//! | `ubl_parts` | the parts of a UBL document that no field of its invoice holds |
//! | `vat_return` | the VAT of a period's sales by tax category and rate, signed documents and unsigned ones apart |

pub mod batch;
pub mod breakdown;
pub mod calculation;
mod calculation_line;
pub(crate) mod calculation_taxes;
mod calculation_terms;
pub mod corrected_reference;
pub mod document_amounts;
pub mod document_difference;
pub mod history;
pub mod invoice_ref;
pub mod invoice_view;
pub mod irn;
pub mod item;
pub mod lifecycle;
pub(crate) mod line_terms;
pub mod number_series;
pub mod owed;
pub mod period_report;
pub mod period_summary;
pub mod qr_picture;
pub mod redaction;
pub mod report_body;
pub mod report_period;
pub mod revision;
pub mod stored_document;
pub mod table_columns;
pub mod table_rows;
pub mod timeline;
pub mod totals;
pub mod trade;
mod trade_sums;
pub mod ubl_parts;
pub mod vat_return;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::domain::invoice::corrected_reference::CorrectedReference;
use crate::domain::invoice::invoice_ref::InvoiceRef;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::lifecycle::{Stage, Transition};
use crate::domain::kernel::codes::{
    AuthorityStatus, Category, DeclaredPaymentStatus, DocumentKind, ItemType, PaymentStatus,
    WorkflowStatus,
};
use crate::domain::kernel::digest;
use crate::domain::kernel::ids::{InvoiceId, ItemId, TaxpayerId};
use crate::domain::kernel::refusal::Refusal;
use crate::domain::money::Amount;
use crate::domain::party::{CustomerDetails, InvoiceCustomer};
use crate::domain::payment::{Payment, PaymentChange, Posting};

#[derive(Debug, Clone, PartialEq)]
pub struct Invoice {
    pub id: InvoiceId,
    pub taxpayer_id: TaxpayerId,
    pub irn: Irn,
    pub invoice_no: String,
    pub category: Category,
    /// The invoice type as the caller named it. If the caller sent only an invoice type code, this is the code.
    pub invoice_type: String,
    pub invoice_date: Date,
    pub due_date: Option<Date>,
    pub currency: String,
    pub customer: InvoiceCustomer,
    pub lines: Vec<Line>,
    pub status: WorkflowStatus,
    pub payment: Payment,
    pub authority: AuthorityState,
    pub batch_no: Option<String>,
    pub extras: Map<String, Value>,
    /// SHA-256 of the draft. It shows whether a create request with the same invoice number is a repetition.
    pub content_digest: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub edited_at: Option<Timestamp>,
}

/// The state of the invoice at the authority. The QR code is provisional until the invoice is signed; also after that
/// if the keys to make the final QR code are missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorityState {
    pub status: AuthorityStatus,
    pub qr_code: String,
    pub signed: bool,
}

/// One line of an invoice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// The id of the item in the taxpayer's catalog. It is assigned when the line is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item_id: Option<ItemId>,
    pub item_name: String,
    pub item_no: Option<String>,
    pub item_type: ItemType,
    pub unit_price: Amount,
    pub quantity: Amount,
    pub price_unit: String,
    pub tax_category: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product_category: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_category: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discount_rate: Option<Amount>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discount_amount: Option<Amount>,
    /// The fields that the caller sent and for which this struct has no field of its own, such as fees.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extras: Map<String, Value>,
}

/// A create request that has passed every rule of its form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Draft {
    pub invoice_no: String,
    /// The IRN that the caller sent. `None` if it is to be built from invoice number, service id and date.
    pub irn: Option<Irn>,
    pub category: Category,
    pub invoice_type: String,
    pub invoice_date: Date,
    pub due_date: Option<Date>,
    pub currency: String,
    pub customer: CustomerDetails,
    pub lines: Vec<Line>,
    pub payable: Amount,
    pub declared: DeclaredPaymentStatus,
    pub extras: Map<String, Value>,
    #[serde(skip)]
    pub batch_no: Option<String>,
}

impl Draft {
    /// Returns the SHA-256 over all fields except `batch_no`, so that an invoice has the same digest in every batch.
    /// The case of the service id in the IRN does not change the digest.
    pub fn digest(&self) -> String {
        // Serialization cannot fail: a draft holds only text, numbers, lists and maps with text keys.
        let mut document = serde_json::to_value(self).unwrap_or_default();
        if let Some(irn) = &self.irn {
            document["irn"] = irn.key().into();
        }
        digest::document_digest(&document)
    }

    pub fn is_credit_note(&self) -> bool {
        document_kind(&self.extras, &self.invoice_type).is_credit_note()
    }

    /// Returns the reference to the invoice that the document corrects, as it is compared.
    pub fn corrected_reference(&self) -> Option<CorrectedReference> {
        let original = corrected_reference::find_original_ref(&self.extras)?;
        Some(CorrectedReference::new(original.kind, &original.text))
    }

    /// Returns the payable as totals count it: below zero for a credit note.
    pub fn payable_in_totals(&self) -> Amount {
        if self.is_credit_note() {
            Amount::ZERO.minus(self.payable).unwrap_or(self.payable)
        } else {
            self.payable
        }
    }

    /// Creates the invoice. If the draft declares it as paid, also returns the first posting for the payment ledger.
    pub fn into_invoice(
        self,
        identity: InvoiceIdentity,
        now: Timestamp,
    ) -> (Invoice, Option<Posting>) {
        let content_digest = self.digest();
        let (payment, posting) = Payment::from_declared(self.payable, self.declared);
        let qr_code = identity.provisional_qr;
        let invoice = Invoice {
            id: identity.id,
            taxpayer_id: identity.taxpayer_id,
            irn: identity.irn,
            invoice_no: self.invoice_no,
            category: self.category,
            invoice_type: self.invoice_type,
            invoice_date: self.invoice_date,
            due_date: self.due_date,
            currency: self.currency,
            customer: identity.customer,
            lines: self.lines,
            status: WorkflowStatus::Draft,
            payment,
            authority: AuthorityState {
                status: AuthorityStatus::Pending,
                qr_code,
                signed: false,
            },
            batch_no: self.batch_no,
            extras: self.extras,
            content_digest,
            created_at: now,
            updated_at: now,
            edited_at: None,
        };
        (invoice, posting)
    }
}

fn document_kind(extras: &Map<String, Value>, invoice_type: &str) -> DocumentKind {
    let code = extras.get("invoice_type_code").and_then(Value::as_str);
    DocumentKind::from_type(code.unwrap_or(invoice_type))
}

/// The parts of an invoice that are not in its draft. They are assigned when the draft is stored.
#[derive(Debug, Clone)]
pub struct InvoiceIdentity {
    pub id: InvoiceId,
    pub taxpayer_id: TaxpayerId,
    pub irn: Irn,
    pub customer: InvoiceCustomer,
    pub provisional_qr: String,
}

impl Invoice {
    /// Applies a transition to the workflow status. Fails if the current status does not allow the transition.
    pub fn apply_transition(mut self, step: Transition, now: Timestamp) -> Result<Self, Refusal> {
        self.status = self.status.after(step)?;
        self.updated_at = now;
        Ok(self)
    }

    /// Returns the reference by which a credit note or debit note names the invoice that it corrects, as it was sent.
    pub fn original_ref(&self) -> Option<InvoiceRef> {
        corrected_reference::find_original_ref(&self.extras)
    }

    /// Returns the reference by which a credit note or debit note names the invoice that it corrects, as it is compared.
    pub fn corrected_reference(&self) -> Option<CorrectedReference> {
        let original = self.original_ref()?;
        Some(CorrectedReference::new(original.kind, &original.text))
    }

    /// Returns the texts of all references by which a credit note or debit note may name this invoice. Another invoice
    /// may be named by the same text, as a reference of another kind.
    pub fn incoming_reference_texts(&self) -> [String; 3] {
        self.incoming_references().map(|reference| reference.text)
    }

    fn incoming_references(&self) -> [CorrectedReference; 3] {
        corrected_reference::references_to_invoice(&self.irn.key(), &self.invoice_no, self.id)
    }

    /// True if this invoice corrects the other one, by any of the references that name it. A document that names itself
    /// corrects nothing.
    pub fn corrects(&self, other: &Self) -> bool {
        let reference = self.corrected_reference();
        self.id != other.id
            && reference.is_some_and(|reference| other.incoming_references().contains(&reference))
    }

    /// Applies a payment change. If the invoice is then fully paid, its workflow status changes, too. Also returns the
    /// posting for the payment ledger.
    pub fn apply_payment(
        self,
        change: PaymentChange,
        now: Timestamp,
    ) -> Result<(Self, Posting), Refusal> {
        let step = match change {
            PaymentChange::Pending | PaymentChange::Rejected => Transition::NotePayment,
            PaymentChange::Paid => Transition::Pay,
            PaymentChange::Partial(_) => Transition::PayPart {
                partly_paid: self.payment.is_partial(),
            },
        };
        let mut invoice = self.apply_transition(step, now)?;
        let (payment, posting) = invoice.payment.after(change)?;
        invoice.payment = payment;
        Ok((invoice, posting))
    }

    /// Applies a payment change as `apply_payment` does, even if the workflow status permits no payment. In that case
    /// the workflow status does not change.
    pub fn apply_payment_in_any_status(
        self,
        change: PaymentChange,
        now: Timestamp,
    ) -> Result<(Self, Posting), Refusal> {
        self.clone().apply_payment(change, now).or_else(|_| {
            let (payment, posting) = self.payment.after(change)?;
            let invoice = Self {
                payment,
                updated_at: now,
                ..self
            };
            Ok((invoice, posting))
        })
    }

    /// Returns the kind of the document, according to its invoice type, which is a code or a name.
    pub fn kind(&self) -> DocumentKind {
        document_kind(&self.extras, &self.invoice_type)
    }

    pub fn is_credit_note(&self) -> bool {
        self.kind().is_credit_note()
    }

    /// True if the due date is before this day and a part of the payable is not paid; credit notes are not considered.
    /// Only invoices of the taxpayer are ever overdue, except drafts, cancelled invoices and invoices whose payment was
    /// rejected.
    pub fn is_overdue(&self, today: Date) -> bool {
        let is_unpaid = matches!(
            self.payment.status,
            PaymentStatus::Pending | PaymentStatus::Partial
        ) && !self.payment.amount_left().is_zero();
        let is_owed = self.kind() == DocumentKind::Invoice
            && !matches!(
                self.status,
                WorkflowStatus::Draft | WorkflowStatus::Cancelled
            );
        is_unpaid && is_owed && self.due_date.is_some_and(|due| due < today)
    }

    /// Records that the pipeline has reached a stage. A later stage that was recorded before stays.
    pub fn reach_stage(self, stage: Stage, now: Timestamp) -> Result<Self, Refusal> {
        let mut invoice = self.apply_transition(Transition::Reach(stage), now)?;
        let status = AuthorityStatus::from(invoice.status.stage().unwrap_or(stage));
        // Keep the status that is further along: a receipt can arrive before the response to the transmission.
        if status.progress_rank() >= invoice.authority.status.progress_rank() {
            invoice.authority.status = status;
        }
        Ok(invoice)
    }

    /// Records that the authority has signed the invoice, with the QR code; `None` if the keys to make it are missing.
    /// An invoice that is signed already keeps its QR code.
    #[must_use]
    pub fn mark_signed(mut self, qr_code: Option<String>) -> Self {
        if !self.authority.signed {
            self.authority.qr_code = qr_code.unwrap_or(self.authority.qr_code);
            self.authority.signed = true;
        }
        self
    }

    /// Returns the QR code of the signature, which may be printed; `None` if the invoice has only the provisional one.
    pub fn signed_qr_code(&self) -> Option<&str> {
        let qr_code = self.authority.qr_code.as_str();
        let is_own = self.authority.signed && qr_code != provisional_qr_code(&self.irn);
        is_own.then_some(qr_code)
    }
}

/// Returns the QR code that is shown until the authority has signed the invoice. It contains only the IRN.
pub fn provisional_qr_code(irn: &Irn) -> String {
    STANDARD.encode(json!({ "irn": irn.as_str() }).to_string())
}

#[cfg(test)]
impl Line {
    pub(crate) fn sample() -> Self {
        Self {
            item_id: None,
            item_name: "Laptop".into(),
            item_no: Some("L-1".into()),
            item_type: ItemType::Product,
            unit_price: Amount::ONE_HUNDRED,
            quantity: 1.into(),
            price_unit: "EA".into(),
            tax_category: "STANDARD_VAT".into(),
            product_category: None,
            service_category: None,
            discount_rate: None,
            discount_amount: None,
            extras: Map::new(),
        }
    }
}

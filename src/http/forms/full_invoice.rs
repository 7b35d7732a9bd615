//! Create Invoice (Full) (spec.md). The caller says what the invoice comes to; the form sees that the totals fit each
//! other and the lines. Whatever was sent and has no column of its own stays in the draft's extras.

use jiff::civil::Date;
use serde_json::{Map, Value, json};

use crate::domain::catalog::{Catalog, List};
use crate::domain::codes::{CREDIT_NOTE_CODE, Category, DeclaredPaymentStatus};
use crate::domain::fault::Faults;
use crate::domain::invoice::{Draft, Line};
use crate::domain::irn::Irn;
use crate::domain::money::Amount;
use crate::http::forms::as_sent::as_sent;
use crate::http::forms::document::{self, Totals};
use crate::http::forms::field::{Bounds, TEXT_MAX};
use crate::http::forms::full_line::FullLine;
use crate::http::forms::reader::Reader;
use crate::http::forms::report::{self, Accepted};
use crate::http::forms::standard_invoice::warn_unless_submittable;
use crate::http::forms::{full_customer, full_line, references, submission};

/// What the form checks against beside the authority's lists.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Account<'a> {
    /// The last day that is not in the future.
    pub(crate) today: Date,
    /// None where the account is asked later: the IRN's service id is then not checked here.
    pub(crate) service_id: Option<&'a str>,
}

/// What columns and lines hold already.
const HELD: [&str; 7] = [
    "invoice_no",
    "invoice_category",
    "irn",
    "issue_date",
    "due_date",
    "document_currency_code",
    "invoice_line",
];

pub(crate) fn read(
    body: &Map<String, Value>,
    account: Account<'_>,
    catalog: &Catalog,
) -> Result<Accepted<Draft>, Faults> {
    let mut form = report::read(body, catalog, |reader| full_invoice(reader, account))?;
    form.value.extras = extras(body, &form.value, &form.unknown);
    Ok(form)
}

/// The draft, as yet without its extras.
pub(crate) fn full_invoice(reader: &mut Reader<'_>, account: Account<'_>) -> Option<Draft> {
    let invoice_no = reader.required("invoice_no").text(TEXT_MAX);
    warn_unless_submittable(reader, invoice_no.as_deref());
    let category = reader.required("invoice_category").word(Category::parse, Category::allowed);
    let irn = reader.required("irn").irn();
    let dates = submission::dates(reader);
    check_irn(reader, irn.as_ref(), account, (invoice_no.as_deref(), dates.issued));
    if dates.issued.is_some_and(|issued| issued > account.today) {
        reader.fault("issue_date", "before_or_equal", "must not be in the future");
    }
    let invoice_type = reader.required("invoice_type_code").code(List::InvoiceTypes);
    let declared = reader
        .optional("payment_status")
        .word(DeclaredPaymentStatus::parse, DeclaredPaymentStatus::allowed)
        .unwrap_or(DeclaredPaymentStatus::Pending);
    let currency = reader.required("document_currency_code").currency();
    reader.optional("tax_currency_code").currency();
    submission::texts(reader);
    let customer = reader.required("accounting_customer_party");
    let customer = customer.object(|reader| full_customer::read(reader, category));
    references::read(reader, false);
    if invoice_type.as_deref() == Some(CREDIT_NOTE_CODE) && !reader.has("billing_reference") {
        reader.warn("the authority wants the billing_reference of a credit note when it is submitted");
    }
    let totals = reader.required("legal_monetary_total").object(totals);
    let lines = lines(reader, totals);
    reader.optional("tax_total").objects(0, tax_total);
    Some(Draft {
        invoice_no: invoice_no?,
        irn: Some(irn?),
        category: category?,
        invoice_type: invoice_type?,
        invoice_date: dates.issued?,
        due_date: dates.due,
        currency: currency?,
        customer: customer?,
        lines: lines?,
        payable: totals?.payable,
        declared,
        extras: Map::new(),
        batch_no: None,
    })
}

/// Whose the IRN is decides; of which number and day it speaks is only remarked on.
fn check_irn(
    reader: &Reader<'_>,
    irn: Option<&Irn>,
    account: Account<'_>,
    (invoice_no, issued): (Option<&str>, Option<Date>),
) {
    let Some(irn) = irn else { return };
    if account.service_id.is_some_and(|service_id| !irn.has_service_id(service_id)) {
        reader.fault("irn", "irn_service_id_mismatch", "must carry this account's authority_service_id");
    }
    if invoice_no.is_some_and(|no| no != irn.invoice_no()) {
        reader.warn("invoice_no is not the invoice number of the irn");
    }
    if issued.is_some_and(|issued| irn.date() != Some(issued)) {
        reader.warn("issue_date is not the date of the irn");
    }
}

fn totals(reader: &mut Reader<'_>) -> Option<Totals> {
    let totals = document::totals(reader)?;
    if !totals.exclusive.about(totals.lines) {
        reader.fault("tax_exclusive_amount", "same", "must equal line_extension_amount within 0.01");
    }
    Some(totals)
}

fn lines(reader: &mut Reader<'_>, totals: Option<Totals>) -> Option<Vec<Line>> {
    let lines = reader.required("invoice_line").objects(1, full_line::read)?;
    let sum = Amount::sum(lines.iter().map(|line| line.amount));
    if totals.is_some_and(|totals| !sum.is_some_and(|sum| sum.about(totals.lines))) {
        let what = "must add up to legal_monetary_total.line_extension_amount";
        reader.fault("invoice_line", "sum", what);
    }
    Some(lines.into_iter().map(|FullLine { line, .. }| line).collect())
}

fn tax_total(reader: &mut Reader<'_>) -> Option<()> {
    let amount = reader.required("tax_amount").amount(Bounds::NOT_NEGATIVE);
    let parts = reader.required("tax_subtotal").objects(0, document::tax_subtotal);
    amount.zip(parts).map(drop)
}

/// Every field that was sent, in the words it was sent in, and the defaults of those that were not.
fn extras(body: &Map<String, Value>, draft: &Draft, unknown: &[Vec<String>]) -> Map<String, Value> {
    let kept = body.iter().filter(|(name, _)| !HELD.contains(&name.as_str()));
    let kept = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
    let Value::Object(mut extras) = as_sent(kept, unknown) else { return Map::new() };
    extras.insert("payment_status".to_owned(), json!(draft.declared));
    for (name, default) in [
        ("tax_point_date", json!(draft.invoice_date.to_string())),
        ("tax_currency_code", json!(draft.currency)),
        ("accounting_cost", json!(0)),
    ] {
        extras.entry(name).or_insert(default);
    }
    extras
}

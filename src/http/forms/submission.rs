//! Submit (spec.md): checks what the authority would check, all of it at once, and makes the document that
//! is sent. What the caller left out and the authority wants is derived; what nobody knows is dropped.

use serde_json::{Map, Value, json};

use crate::domain::catalog::{Catalog, List};
use crate::domain::codes::{CREDIT_NOTE_CODE, Category, DeclaredPaymentStatus};
use crate::domain::fault::Faults;
use crate::domain::irn::Irn;
use crate::domain::money::Amount;
use crate::domain::party::Taxpayer;
use crate::domain::pipeline::{Operation, Request};
use crate::http::forms::document::{self, Totals};
use crate::http::forms::field::{Bounds, LONG_TEXT_MAX, TEXT_MAX};
use crate::http::forms::reader::Reader;
use crate::http::forms::report::{self, Accepted};
use crate::http::forms::{references, taxpayer};

/// The invoice type code of a debit note, as the authority numbers it.
const DEBIT_NOTE_CODE: &str = "384";
/// What is assumed to be taxed where no tax category is known.
const STANDARD_RATE: (&str, &str) = ("STANDARD_VAT", "7.5");

/// What of a submission the document is completed with.
#[derive(Debug)]
struct Submission {
    irn: Irn,
    category: Category,
    status: DeclaredPaymentStatus,
    currency: String,
    has_tax_currency: bool,
    /// None where the caller said it.
    tax_total: Option<Value>,
}

/// Reads a submission of a taxpayer; without one only the faults are of interest.
pub(crate) fn read(
    body: &Map<String, Value>,
    taxpayer: Option<&Taxpayer>,
    catalog: &Catalog,
) -> Result<Accepted<Request>, Faults> {
    let read = report::read(body, catalog, |reader| submission(reader, taxpayer))?;
    let document = document(body, &read.value, &read.unknown);
    let value = Request { operation: Operation::Submit, irn: read.value.irn, document };
    Ok(Accepted { value, warnings: read.warnings, unknown: read.unknown })
}

fn submission(reader: &mut Reader<'_>, taxpayer: Option<&Taxpayer>) -> Option<Submission> {
    let reference = reader.required("invoice_reference").text(TEXT_MAX);
    business_id(reader, taxpayer);
    let irn = irn(reader, taxpayer, reference.as_deref());
    let type_code = reader.required("invoice_type_code").code(List::InvoiceTypes);
    dates(reader);
    let status = reader
        .optional("payment_status")
        .word(DeclaredPaymentStatus::parse, DeclaredPaymentStatus::allowed)
        .unwrap_or(DeclaredPaymentStatus::Pending);
    let currency = reader.required("document_currency_code").currency();
    let has_tax_currency = reader.optional("tax_currency_code").currency().is_some();
    texts(reader);
    let category = reader.required("invoice_category").word(Category::parse, Category::allowed);
    reader.required("accounting_supplier_party").object(document::party);
    let needs_customer = category.is_none_or(Category::needs_tin);
    reader.required_if(needs_customer, "accounting_customer_party").object(document::party);
    let corrects = matches!(type_code.as_deref(), Some(CREDIT_NOTE_CODE | DEBIT_NOTE_CODE));
    references::read(reader, corrects);
    let totals = reader.required("legal_monetary_total").object(document::totals);
    lines(reader, totals);
    let tax_total = tax_total(reader, totals);
    Some(Submission {
        irn: irn?,
        category: category?,
        status,
        currency: currency?,
        has_tax_currency,
        tax_total,
    })
}

fn business_id(reader: &mut Reader<'_>, taxpayer: Option<&Taxpayer>) {
    let business_id = taxpayer::uuid(reader.required("business_id"));
    let is_other = |id: &str, taxpayer: &Taxpayer| !id.eq_ignore_ascii_case(&taxpayer.business_id);
    if business_id.zip(taxpayer).is_some_and(|(id, taxpayer)| is_other(&id, taxpayer)) {
        reader.fault("business_id", "own", "must be the business id of this taxpayer");
    }
}

fn irn(reader: &mut Reader<'_>, taxpayer: Option<&Taxpayer>, reference: Option<&str>) -> Option<Irn> {
    let irn = reader.required("irn").irn()?;
    if taxpayer.is_some_and(|taxpayer| !irn.has_service_id(&taxpayer.service_id)) {
        let what = "must carry the service id of this taxpayer";
        reader.fault("irn", "irn_service_id_mismatch", what);
    }
    if !irn.invoice_no().bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        let what =
            "must begin with an invoice number of letters and digits only, which the authority requires";
        reader.fault("irn", "irn_invoice_no", what);
    }
    if reference.is_some_and(|reference| reference != irn.invoice_no()) {
        reader.warn("invoice_reference is not the invoice number of the irn");
    }
    Some(irn)
}

fn dates(reader: &mut Reader<'_>) {
    let issued = reader.required("issue_date").date();
    let due = reader.optional("due_date").date();
    if due.zip(issued).is_some_and(|(due, issued)| due < issued) {
        reader.fault("due_date", "after_or_equal", "must not be before issue_date");
    }
    reader.optional("issue_time").shaped("time", "must be a time written HH:mm:ss", |text| {
        text.len() == 8 && jiff::civil::Time::strptime("%H:%M:%S", text).is_ok()
    });
    reader.optional("tax_point_date").date();
    reader.optional("actual_delivery_date").date();
}

fn texts(reader: &mut Reader<'_>) {
    reader.optional("accounting_cost").amount(Bounds::Any);
    reader.optional("buyer_reference").text(TEXT_MAX);
    reader.optional("note").long_text(0, LONG_TEXT_MAX);
    reader.optional("payment_terms_note").long_text(0, LONG_TEXT_MAX);
}

fn lines(reader: &mut Reader<'_>, totals: Option<Totals>) {
    let Some(amounts) = reader.required("invoice_line").objects(1, document::line) else { return };
    let Some(totals) = totals else { return };
    if !Amount::sum(amounts).is_some_and(|sum| sum.about(totals.lines)) {
        let what = "must add up to legal_monetary_total.line_extension_amount";
        reader.fault("invoice_line", "sum", what);
    }
}

/// The authority wants the taxes said; where the caller left them out they follow from the totals.
fn tax_total(reader: &mut Reader<'_>, totals: Option<Totals>) -> Option<Value> {
    let is_given =
        reader.optional("tax_total").objects(0, document::tax_total).is_some_and(|all| !all.is_empty());
    if is_given || reader.has("tax_total") && totals.is_none() {
        return None;
    }
    let totals = totals?;
    let tax = totals.inclusive.minus(totals.exclusive).filter(|tax| !tax.is_negative())?;
    let Some((id, percent)) = category_of(tax, totals.exclusive, reader.catalog()) else {
        let what =
            "is required: no tax category's percent leads from tax_exclusive_amount to tax_inclusive_amount";
        reader.fault("tax_total", "required", what);
        return None;
    };
    Some(json!([{
        "tax_amount": tax,
        "tax_subtotal": [{
            "taxable_amount": totals.exclusive,
            "tax_amount": tax,
            "tax_category": { "id": id, "percent": percent },
        }],
    }]))
}

/// The first tax category whose percent of the amount is the tax; without tax, the one named after zero.
fn category_of(tax: Amount, amount: Amount, catalog: &Catalog) -> Option<(String, Amount)> {
    let known = catalog.tax_categories();
    if known.is_empty() {
        let percent = if tax.is_zero() { Amount::ZERO } else { Amount::parse(STANDARD_RATE.1).ok()? };
        let id = if tax.is_zero() { "ZERO_VAT" } else { STANDARD_RATE.0 };
        return Some((id.to_owned(), percent));
    }
    let fits = |percent: Amount| {
        if tax.is_zero() {
            percent.is_zero()
        } else {
            percent.percent_of(amount).is_some_and(|due| due.about(tax))
        }
    };
    let fitting: Vec<_> = known.into_iter().filter(|(_, percent)| fits(*percent)).collect();
    let named = |word: &str| fitting.iter().find(|(id, _)| id.starts_with(word));
    let best = named("ZERO_VAT").or_else(|| named(STANDARD_RATE.0)).or_else(|| fitting.first());
    best.map(|(id, percent)| ((*id).to_owned(), *percent))
}

/// The fields as they were given, without the unknown and the empty ones, in the authority's words.
fn document(body: &Map<String, Value>, submission: &Submission, unknown: &[Vec<String>]) -> Value {
    let mut document = Value::Object(body.clone());
    for steps in unknown {
        remove(&mut document, steps);
    }
    drop_empty(&mut document);
    let Value::Object(fields) = &mut document else { return document };
    fields.remove("invoice_category");
    fields.insert("invoice_kind".to_owned(), json!(submission.category));
    fields.insert("payment_status".to_owned(), json!(submission.status.reads_as()));
    if !submission.has_tax_currency {
        fields.insert("tax_currency_code".to_owned(), json!(submission.currency));
    }
    if let Some(tax_total) = &submission.tax_total {
        fields.insert("tax_total".to_owned(), tax_total.clone());
    }
    document
}

fn remove(value: &mut Value, steps: &[String]) {
    match (value, steps) {
        (Value::Object(fields), [last]) => drop(fields.remove(last)),
        (Value::Object(fields), [first, rest @ ..]) => {
            if let Some(inner) = fields.get_mut(first) {
                remove(inner, rest);
            }
        }
        (Value::Array(items), [first, rest @ ..]) => {
            if let Some(inner) = first.parse().ok().and_then(|index: usize| items.get_mut(index)) {
                remove(inner, rest);
            }
        }
        _ => {}
    }
}

/// What a form takes for absent is not sent either.
fn drop_empty(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, inner| match inner {
                Value::Null => false,
                Value::String(text) => !text.trim().is_empty(),
                _ => true,
            });
            fields.values_mut().for_each(drop_empty);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_empty),
        _ => {}
    }
}

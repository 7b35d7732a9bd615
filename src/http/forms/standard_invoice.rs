//! Create Invoice (Standard) (spec.md). The payable is computed from the lines, since the caller does not
//! say it.

use serde_json::{Map, Value};

use crate::actors::taxpayer::command::Which;
use crate::domain::catalog::List;
use crate::domain::codes::{
    CREDIT_NOTE_CODE, CREDIT_NOTE_WORD, Category, DeclaredPaymentStatus, UniqueNoType,
};
use crate::domain::invoice::{Draft, Line};
use crate::domain::money::Amount;
use crate::domain::totals;
use crate::http::forms::field::TEXT_MAX;
use crate::http::forms::reader::Reader;
use crate::http::forms::{customer, line};

/// A draft, and the invoice it says it corrects.
#[derive(Debug, PartialEq)]
pub(crate) struct StandardInvoice {
    pub(crate) draft: Draft,
    pub(crate) original: Option<Which>,
}

pub(crate) fn read(reader: &mut Reader<'_>) -> Option<StandardInvoice> {
    let invoice_no = reader.required("invoice_no").text(TEXT_MAX);
    let category = reader.required("invoice_category").word(Category::parse, Category::allowed);
    let kind = Kind::read(reader);
    let original = original(reader, kind.is_credit_note());
    let invoice_date = reader.required("invoice_date").date();
    let due_date = reader.required("due_date").date();
    let currency = reader.required("currency").currency();
    let customer = reader.required("customer").object(|reader| customer::read(reader, category));
    let lines = reader.required("invoice_lines").objects(1, line::read);
    if due_date.zip(invoice_date).is_some_and(|(due, issued)| due < issued) {
        reader.warn("due_date is before invoice_date");
    }
    let payable = payable(reader, lines.as_deref()?, currency.as_deref()?)?;
    let extras = extras(&kind, original.as_ref());
    let draft = Draft {
        invoice_no: invoice_no?,
        irn: None,
        category: category?,
        invoice_type: kind.text.or(kind.code)?,
        invoice_date: invoice_date?,
        due_date: Some(due_date?),
        currency: currency?,
        customer: customer?,
        lines: lines?,
        payable,
        declared: DeclaredPaymentStatus::Pending,
        extras,
        batch_no: None,
    };
    Some(StandardInvoice { draft, original })
}

/// What kind of invoice it is: free text, a code of the authority, or both.
struct Kind {
    text: Option<String>,
    code: Option<String>,
}

impl Kind {
    fn read(reader: &mut Reader<'_>) -> Self {
        let has_code = reader.has("invoice_type_code");
        let text = reader.required_if(!has_code, "invoice_type").text(TEXT_MAX);
        let code = reader.optional("invoice_type_code").code(List::InvoiceTypes);
        Self { text, code }
    }

    fn is_credit_note(&self) -> bool {
        self.code.as_deref() == Some(CREDIT_NOTE_CODE)
            || self.text.as_deref().is_some_and(|text| text.eq_ignore_ascii_case(CREDIT_NOTE_WORD))
    }
}

fn original(reader: &mut Reader<'_>, is_credit_note: bool) -> Option<Which> {
    let text = reader.required_if(is_credit_note, "original_invoice_reference").text(TEXT_MAX);
    let kind = reader
        .required_if(text.is_some(), "original_invoice_reference_type")
        .word(UniqueNoType::parse, UniqueNoType::allowed);
    Some(Which { kind: kind?, text: text? })
}

fn payable(reader: &Reader<'_>, lines: &[Line], currency: &str) -> Option<Amount> {
    let payable = totals::payable(lines, currency, reader.catalog());
    if payable.is_err() {
        reader.fault("invoice_lines", "max", "comes to a total that is too large");
    }
    payable.ok()
}

/// What is stored with the invoice and not echoed.
fn extras(kind: &Kind, original: Option<&Which>) -> Map<String, Value> {
    let code = kind.code.clone().map(|code| ("invoice_type_code", code));
    let reference = original.map(|which| ("original_invoice_reference", which.text.clone()));
    let reference_type = original.map(|which| ("original_invoice_reference_type", which.kind.to_string()));
    let all = [code, reference, reference_type];
    all.into_iter().flatten().map(|(name, text)| (name.to_owned(), Value::String(text))).collect()
}
